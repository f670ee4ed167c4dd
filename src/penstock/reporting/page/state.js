// What is open and selected, and who wants to know when that changes.
//
// In:   the model; what views ask for.
// Out:  calls of listeners, after each change.
// Not:  draws nothing.

import { FOLDS, folded, isScope } from "./fold.js";

export class State {
  constructor(model) {
    this.model = model;
    this.fold = FOLDS[0];
    this.tree = folded(model.graph, this.fold);
    // The scope that the picture shows.
    this.scope = lonely(this.tree.root);
    // The selected node, or -1; and the selected scope if no node is.
    this.node = -1;
    this.item = null;
    this.colour = "device";
    // The start of ways, if somebody marked one; and the nodes of the way that is shown.
    this.marked = -1;
    this.way = [];
    this.listeners = [];
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  // Changes something, and tells everybody what.
  change(what) {
    const before = { ...this };
    Object.assign(this, what);
    const changed = new Set(Object.keys(what).filter((name) => this[name] !== before[name]));
    if (changed.size) for (const listener of this.listeners) listener(changed);
  }

  foldBy(fold) {
    const tree = folded(this.model.graph, fold);
    const item = this.node >= 0 ? tree.itemOf[this.node] : null;
    this.change({ fold, tree, scope: item?.parent ?? lonely(tree.root), item });
  }

  // Selects a node, and opens the scope that it is in.
  showNode(node) {
    const item = this.tree.itemOf[node] ?? null;
    this.change({ node, item, ...(item ? { scope: item.parent } : {}) });
  }

  selectItem(item) {
    this.change({ item, node: item.node });
  }

  open(item) {
    if (isScope(item)) this.change({ scope: item, item: null, node: -1 });
  }

  close() {
    const scope = this.scope;
    if (scope.parent) this.change({ scope: scope.parent, item: scope, node: -1 });
  }
}

// What is alone in a scope is what one wants to see of it.
function lonely(root) {
  let item = root;
  while (item.children.length === 1 && isScope(item.children[0])) item = item.children[0];
  return item;
}
