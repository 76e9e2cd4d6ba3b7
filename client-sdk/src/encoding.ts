const textEncoder = new TextEncoder();

/** Engines limit the number of arguments of `String.fromCharCode`. */
const BYTES_PER_CALL = 0x8000;

/**
 * Encodes bytes, or a string as UTF-8, as base64url without padding.
 *
 * @see RFC 7515 §2 https://www.rfc-editor.org/rfc/rfc7515#section-2
 */
export function encodeBase64Url(input: Uint8Array | string): string {
  const bytes = typeof input === 'string' ? textEncoder.encode(input) : input;
  let binary = '';
  for (let offset = 0; offset < bytes.length; offset += BYTES_PER_CALL) {
    binary += String.fromCharCode(...bytes.subarray(offset, offset + BYTES_PER_CALL));
  }
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/**
 * Decodes base64url without padding; `undefined` if the text is malformed.
 * @see RFC 7515 §2 https://www.rfc-editor.org/rfc/rfc7515#section-2
 */
export function decodeBase64Url(text: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[A-Za-z0-9_-]*$/.test(text) || text.length % 4 === 1) return undefined;
  return decodeBase64(text.replaceAll('-', '+').replaceAll('_', '/'));
}

/** Decodes plain base64 (white space allowed, as in PEM); `undefined` if it is malformed. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  let binary: string;
  try {
    binary = atob(text);
  } catch {
    return undefined;
  }
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index += 1) bytes[index] = binary.charCodeAt(index);
  return bytes;
}

/**
 * A random string of unreserved characters for state, nonce, PKCE verifier and `jti`.
 *
 * @param byteLength entropy in bytes; the default of 32 gives 43 characters, the minimum for PKCE
 */
export function randomToken(byteLength = 32): string {
  return encodeBase64Url(crypto.getRandomValues(new Uint8Array(byteLength)));
}

/** Compares two strings in a time that depends only on their lengths, to prevent timing attacks. */
export function isEqualConstantTime(left: string, right: string): boolean {
  let difference = left.length ^ right.length;
  for (let index = 0; index < left.length; index += 1) {
    difference |= left.charCodeAt(index) ^ right.charCodeAt(index % (right.length || 1));
  }
  return difference === 0;
}
