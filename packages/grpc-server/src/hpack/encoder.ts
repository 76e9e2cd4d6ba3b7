import type { HeaderField } from './static-table.ts';
import { staticTable } from './static-table.ts';

const staticIndexes = new Map(staticTable.map(([name, value], at) => [`${name}\0${value}`, at + 1]));
const staticNames = new Map(staticTable.map(([name], at) => [name, at + 1]).reverse() as [string, number][]);

/**
 * Encodes fields without the dynamic table and without Huffman codes, so that the bytes are the
 * same on every connection and those of common replies can be kept.
 */
export function encodeHeaders(fields: readonly HeaderField[]): Buffer {
  const parts: number[] = [];
  for (const [name, value] of fields) {
    const index = staticIndexes.get(`${name}\0${value}`);
    if (index !== undefined) {
      pushInteger(parts, 0x80, 7, index);
      continue;
    }
    const nameIndex = staticNames.get(name) ?? 0;
    pushInteger(parts, 0x00, 4, nameIndex);
    if (nameIndex === 0) pushString(parts, name);
    pushString(parts, value);
  }
  return Buffer.from(parts);
}

/** RFC 7541 §5.1. */
function pushInteger(parts: number[], pattern: number, prefixBits: number, value: number): void {
  const mask = (1 << prefixBits) - 1;
  if (value < mask) {
    parts.push(pattern | value);
    return;
  }
  parts.push(pattern | mask);
  let rest = value - mask;
  for (; rest >= 128; rest = Math.floor(rest / 128)) parts.push((rest % 128) | 0x80);
  parts.push(rest);
}

function pushString(parts: number[], text: string): void {
  pushInteger(parts, 0x00, 7, text.length);
  for (let at = 0; at < text.length; at++) parts.push(text.charCodeAt(at) & 0xff);
}
