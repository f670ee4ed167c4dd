// Unpacks what the report holds.
//
// In:   text in base64: gzip of JSON.
// Out:  the JSON, as objects.
// Not:  knows what it means; `decode.js` does.

export async function unpack(text) {
  const packed = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}
