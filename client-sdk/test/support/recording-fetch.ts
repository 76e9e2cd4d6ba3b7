import type { Fetch } from '../../src/index.ts';

/** A request as passed to `fetch`. */
export interface SentRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Headers;
  readonly body: string;
}

/**
 * A `fetch` that returns the given responses in order, repeats the last one, and records requests.
 */
export function recordingFetch(...answers: readonly (() => Response)[]): {
  readonly fetch: Fetch;
  readonly sent: SentRequest[];
} {
  const sent: SentRequest[] = [];
  async function fetch(url: string, init: RequestInit): Promise<Response> {
    const request = new Request(url, init);
    sent.push({
      method: request.method,
      url: new URL(url),
      headers: request.headers,
      body: await request.text(),
    });
    const answer = answers[Math.min(sent.length, answers.length) - 1];
    return answer === undefined ? new Response() : answer();
  }
  return { fetch, sent };
}

/** Makes an answer of a text. */
export function answer(body: string, contentType: string, status = 200): () => Response {
  return () => new Response(body, { status, headers: { 'content-type': contentType } });
}

/** Makes an answer of a token response. */
export function tokenAnswer(fields: Record<string, unknown> = {}): () => Response {
  return () => Response.json({ access_token: 'at', token_type: 'Bearer', expires_in: 3600, ...fields });
}
