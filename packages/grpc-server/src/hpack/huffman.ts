/**
 * Code length in bits of each symbol 0-255 and of the end-of-string symbol (256). The lengths
 * define the code: within a length, codes count up in the order of the symbols.
 *
 * @see RFC 7541 Appendix B https://www.rfc-editor.org/rfc/rfc7541#appendix-B
 */
const huffmanCodeLengths: readonly number[] = [
  [13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28],
  [28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6],
  [6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7],
  [8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7],
  [15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24],
  [23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23],
  [23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26],
  [26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20],
  [21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27],
  [27, 27, 26, 30],
].flat();

const endOfString = 256;

/**
 * A binary tree in two arrays: `children[2 * node + bit]` is the next node, or `-1 - symbol` for a
 * leaf. 0 is the root, which is no child of any node.
 */
const children = buildTree();

function buildTree(): Int16Array {
  const tree = new Int16Array(2 * huffmanCodeLengths.length);
  let nodes = 1;
  let code = 0;
  let length = 0;
  const symbols = huffmanCodeLengths.map((bits, symbol) => ({ bits, symbol }));
  for (const { bits, symbol } of symbols.sort((a, b) => a.bits - b.bits || a.symbol - b.symbol)) {
    code <<= bits - length;
    length = bits;
    let node = 0;
    for (let shift = bits - 1; shift > 0; shift--) {
      const at = 2 * node + ((code >> shift) & 1);
      if (tree[at] === 0) tree[at] = nodes++;
      node = tree[at] ?? 0;
    }
    tree[2 * node + (code & 1)] = -1 - symbol;
    code++;
  }
  return tree;
}

/**
 * Decodes `bytes[start, end)` to a string with one character for each byte.
 *
 * @throws Error when the bytes contain the end-of-string symbol or end in something that is not
 * padding (RFC 7541 §5.2).
 */
export function decodeHuffman(bytes: Uint8Array, start = 0, end = bytes.length): string {
  let text = '';
  let node = 0;
  /** Bits since the last symbol, and whether all of them were 1. */
  let depth = 0;
  let allOnes = true;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] ?? 0;
    for (let shift = 7; shift >= 0; shift--) {
      const bit = (byte >> shift) & 1;
      const next = children[2 * node + bit] ?? 0;
      if (next < 0) {
        const symbol = -1 - next;
        if (symbol === endOfString) throw new Error('Huffman-coded string contains the end-of-string symbol');
        text += String.fromCharCode(symbol);
        node = 0;
        depth = 0;
        allOnes = true;
      } else {
        node = next;
        depth++;
        allOnes &&= bit === 1;
      }
    }
  }
  if (depth > 7 || !allOnes) throw new Error('Huffman-coded string ends within a code or in invalid padding');
  return text;
}
