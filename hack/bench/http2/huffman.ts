/**
 * Code length in bits of each symbol 0-255 and of the end-of-string mark (256).
 * The lengths are enough: within a length, codes count up in the order of the symbols.
 *
 * @see RFC 7541 Appendix B https://www.rfc-editor.org/rfc/rfc7541#appendix-B
 */
export const huffmanCodeLengths: readonly number[] = [
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
const longestCode = 30;

/** For each code length: the first code, how many there are, and where their symbols start in `symbolsByCode`. */
interface LengthClass {
  firstCode: number;
  count: number;
  offset: number;
}

const symbolsByCode: readonly number[] = huffmanCodeLengths
  .map((bits, symbol) => ({ bits, symbol }))
  .sort((a, b) => a.bits - b.bits || a.symbol - b.symbol)
  .map(({ symbol }) => symbol);

const lengthClasses: readonly LengthClass[] = classifyLengths();

function classifyLengths(): LengthClass[] {
  const classes: LengthClass[] = [];
  let code = 0;
  let offset = 0;
  for (let bits = 0; bits <= longestCode; bits++) {
    const count = huffmanCodeLengths.filter((length) => length === bits).length;
    classes.push({ firstCode: code, count, offset });
    code = (code + count) << 1;
    offset += count;
  }
  return classes;
}

/**
 * Decodes a Huffman-coded HPACK string to text, one character a byte.
 *
 * @throws Error when the bytes hold a code that does not exist or end within one that is no padding.
 */
export function decodeHuffman(bytes: Uint8Array): string {
  let text = '';
  let code = 0;
  let bits = 0;
  for (const byte of bytes) {
    for (let shift = 7; shift >= 0; shift--) {
      code = (code << 1) | ((byte >> shift) & 1);
      bits++;
      const symbol = symbolOf(code, bits);
      if (symbol === undefined) continue;
      text += String.fromCharCode(symbol);
      code = 0;
      bits = 0;
    }
  }
  // What is left over must be the beginning of the end-of-string code, which is all ones.
  if (bits > 7 || code !== (1 << bits) - 1) throw new Error('a Huffman-coded header ends within a code');
  return text;
}

function symbolOf(code: number, bits: number): number | undefined {
  const candidates = lengthClasses[bits];
  if (candidates === undefined) throw new Error('a Huffman-coded header has a code that is too long');
  const index = code - candidates.firstCode;
  if (index < 0 || index >= candidates.count) return undefined;
  const symbol = symbolsByCode[candidates.offset + index];
  if (symbol === endOfString) throw new Error('a Huffman-coded header contains the end-of-string mark');
  return symbol;
}
