import { RequestError } from '@tollgate/admin-clients/clients';
import { readBody } from '@tollgate/kit/body';
import { requestAt } from './request-at.ts';

/** Lists of the admin APIs come in pages; the largest, of the keys of an hour, has a few MiB. */
const maxMebibytes = 32;

/** Statuses of responses without a body, which `Response` accepts with none only. */
const withoutBody: readonly number[] = [204, 205, 304];

type Fetch = (request: Request, options: { readonly signal: AbortSignal }) => Promise<Response>;

/**
 * Fetches from one address of the name in a URL. Of the headers, the response has its type.
 *
 * @throws RequestError `response_too_large`, or an error of the network
 */
export function fetchAt(address: string): Fetch {
  return async (request, { signal }) => {
    const body = request.body === null ? undefined : Buffer.from(await request.arrayBuffer());
    const { method, url } = request;
    const headers = Object.fromEntries(request.headers);
    const message = await requestAt(url, { address, method, headers, body, signal });
    const { statusCode: status = 0, statusMessage: statusText = '' } = message;
    const type = message.headers['content-type'];
    return readResponse(message, { status, statusText, headers: type ? { 'content-type': type } : {} });
  };
}

/**
 * Fetches from the address that DNS gives.
 *
 * @throws RequestError `response_too_large`, or an error of the network
 */
export const fetchByName: Fetch = async (request, options) => {
  const { body, status, statusText, headers } = await fetch(request, options);
  return readResponse(body, { status, statusText, headers });
};

async function readResponse(
  body: AsyncIterable<Uint8Array> | null,
  init: ResponseInit & { readonly status: number },
): Promise<Response> {
  const content = await readBody(body, maxMebibytes * 1024 * 1024, () => tooLarge(init.status));
  return new Response(withoutBody.includes(init.status) ? null : new Uint8Array(content), init);
}

function tooLarge(status: number): RequestError {
  const message = `the response has more than ${maxMebibytes} MiB, which the console does not read`;
  return new RequestError(message, { code: 'response_too_large', status });
}
