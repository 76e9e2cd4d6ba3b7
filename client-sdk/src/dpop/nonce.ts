/** Far more than an OAuth error. */
const MAXIMUM_ERROR_BYTES = 65_536;

/**
 * Whether the response rejects the request only because its proof lacks the server's nonce, which
 * it contains. A nonce alone does not mean that: servers rotate it with any response, and a spent
 * code must not be sent again.
 * @see RFC 9449 §8 https://www.rfc-editor.org/rfc/rfc9449#section-8
 * @see RFC 9449 §9 https://www.rfc-editor.org/rfc/rfc9449#section-9
 */
export async function isNonceDemand(response: Response): Promise<boolean> {
  const { status, headers } = response;
  if ((status !== 400 && status !== 401) || !headers.has('dpop-nonce')) return false;
  if (headers.get('www-authenticate')?.includes('use_dpop_nonce')) return true;
  const isJson = headers.get('content-type')?.includes('json') ?? false;
  return isJson && isNonceError(await readStart(response.clone()));
}

function isNonceError(text: string): boolean {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && 'error' in body && body.error === 'use_dpop_nonce';
  } catch {
    return false;
  }
}

/** The start of the body. If it cannot be read, neither can the caller's copy. */
async function readStart(copy: Response): Promise<string> {
  if (copy.body === null) return '';
  const decoder = new TextDecoder();
  const reader = copy.body.getReader();
  let text = '';
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      text += decoder.decode(chunk.value, { stream: true });
      if (text.length > MAXIMUM_ERROR_BYTES) {
        // The promise is not awaited: it settles only when the caller's copy is read or cancelled,
        // too.
        void reader.cancel().catch(() => undefined);
        break;
      }
    }
  } catch {
    return '';
  }
  return text;
}

/** Beyond this, the origin that was updated least recently is dropped. */
const MAXIMUM_ORIGINS = 100;

/** Longer nonces are ignored: they are sent with every request. */
const MAXIMUM_NONCE_LENGTH = 1024;

/**
 * The last nonce of each origin, bounded; authorization server and APIs each have their own.
 *
 * @see RFC 9449 §8 https://www.rfc-editor.org/rfc/rfc9449#section-8
 */
export class NonceMemory {
  readonly #nonces = new Map<string, string>();

  get(origin: string): string | undefined {
    return this.#nonces.get(origin);
  }

  /** Stores the value of a response's `DPoP-Nonce` header, if there is one. */
  store(origin: string, nonce: string | null): void {
    if (nonce === null || nonce === '' || nonce.length > MAXIMUM_NONCE_LENGTH) return;
    this.#nonces.delete(origin);
    this.#nonces.set(origin, nonce);
    const [oldest] = this.#nonces.keys();
    if (this.#nonces.size > MAXIMUM_ORIGINS && oldest !== undefined) this.#nonces.delete(oldest);
  }
}
