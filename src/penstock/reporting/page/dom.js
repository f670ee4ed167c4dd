// Elements, made without markup: text of a model is text, whatever it looks like.
//
// In:   names of elements, properties, children.
// Out:  elements.
// Not:  knows what they show.

export const $ = (id) => document.getElementById(id);

// An element with attributes, listeners (`onclick`) and children, which are elements or texts.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.filter((child) => child !== null && child !== undefined));
}

// A canvas of as many points as its place has on the screen; false if it has none.
export function fitCanvas(canvas) {
  const { clientWidth: width, clientHeight: height } = canvas;
  const ratio = window.devicePixelRatio || 1;
  if (!width || !height) return false;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  canvas.getContext("2d").setTransform(ratio, 0, 0, ratio, 0, 0);
  return true;
}

// Calls a function once before the next picture, however often it is asked for until then.
export function oncePerFrame(draw) {
  let isWaiting = false;
  return () => {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(() => {
      isWaiting = false;
      draw();
    });
  };
}

// Hands a text to whoever reads the page as a file.
export function download(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  make("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
