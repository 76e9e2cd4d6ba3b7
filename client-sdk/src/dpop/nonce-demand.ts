/** An OAuth error is far smaller; a body beyond this is something else. */
const MAXIMUM_ERROR_BYTES = 65_536;

/**
 * Whether the response refuses the request only because its proof lacks the server's nonce, which it hands out. A
 * nonce alone says nothing: servers rotate it with any response, and a spent code must not be sent again.
 *
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

/** The body as text, cut where it gets too long to be an error. What breaks here breaks for the caller's copy as well. */
async function readStart(copy: Response): Promise<string> {
  if (copy.body === null) return '';
  const decoder = new TextDecoder();
  const reader = copy.body.getReader();
  let text = '';
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
      text += decoder.decode(chunk.value, { stream: true });
      if (text.length > MAXIMUM_ERROR_BYTES) {
        // Settles only when the caller's copy is read or cancelled too, so it cannot be awaited.
        void reader.cancel().catch(() => undefined);
        break;
      }
    }
  } catch {
    return '';
  }
  return text;
}
