// A cell's code in an address, and back: #cell=3&code=... (packed, then base64 without signs that addresses escape).

const MOST = 60000;

export async function address(number, code) {
  const packed = await through(new CompressionStream("deflate-raw"), new TextEncoder().encode(code));
  const letters = btoa(String.fromCharCode(...packed)).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
  return `${location.href.split("#")[0]}#cell=${number}&code=${letters}`;
}

/** The cell and code in this page's address; null if there is none, or if it cannot be read. */
export async function shared(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, "").slice(0, MOST));
  const number = Number(parts.get("cell"));
  if (!parts.has("code") || !Number.isInteger(number)) return null;
  try {
    const letters = parts.get("code").replaceAll("-", "+").replaceAll("_", "/");
    const packed = Uint8Array.from(atob(letters), (letter) => letter.charCodeAt(0));
    const code = new TextDecoder().decode(await through(new DecompressionStream("deflate-raw"), packed));
    return code.length <= MOST ? { number, code } : null;
  } catch {
    return null;
  }
}

async function through(stream, bytes) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}
