/** Slots of every cluster. */
export const slotCount = 16_384;

/**
 * The slot of a key: the CRC16 of its UTF-8 bytes. When the key contains `{…}`, only what is between the first such pair
 * of braces counts, as with every client of a cluster.
 *
 * @see https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/#key-distribution-model
 */
export function slotOf(key: string): number {
  return crc16(hashedPart(key)) % slotCount;
}

function hashedPart(key: string): string {
  const open = key.indexOf('{');
  const close = open < 0 ? -1 : key.indexOf('}', open + 1);
  return close > open + 1 ? key.slice(open + 1, close) : key;
}

/** CRC16 with the polynomial 0x1021, from 0 (XMODEM). */
function crc16(text: string): number {
  let crc = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) {
      return crc16OfBytes(Buffer.from(text));
    }
    crc = step(crc, code);
  }
  return crc;
}

function crc16OfBytes(bytes: Uint8Array): number {
  return bytes.reduce(step, 0);
}

const table = Uint16Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 8;
  for (let bit = 0; bit < 8; bit += 1) {
    crc = (crc & 0x8000) === 0 ? crc << 1 : (crc << 1) ^ 0x1021;
  }
  return crc;
});

function step(crc: number, byte: number): number {
  return ((crc << 8) & 0xffff) ^ (table[(crc >> 8) ^ byte] ?? 0);
}
