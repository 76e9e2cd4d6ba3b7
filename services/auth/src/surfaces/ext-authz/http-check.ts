import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AuthzDecision } from '../../domain/authz/authz-decision.ts';
import type { AuthzRequest } from '../../domain/authz/authz-request.ts';
import type { AuthorizeRequest } from '../../use-cases/authz/authorize-request.ts';
import { denialBody, denialHeaders } from './denial.ts';

/** Header of an answer that names those to take away from the request, as Envoy reads it. */
const removeHeader = 'x-envoy-auth-headers-to-remove';

/** Answers one request of Envoy about another one, which has the same method, path and headers. */
export type HttpCheck = (request: IncomingMessage, response: ServerResponse) => void;

/** Makes the function that answers: 200 with the headers for the upstream, or the refusal as the client gets it. */
export function createHttpCheck(authorize: AuthorizeRequest): HttpCheck {
  return (request, response) => {
    // Bodies come only when Envoy is told to send them; nothing is decided by one.
    request.resume();
    const decision = authorize(readRequest(request));
    if (decision instanceof Promise) void decision.then((late) => answer(response, late));
    else answer(response, decision);
  };
}

/** Undecoded, and of every header each value: what Node makes of them has lost the second one of a name. */
function readRequest({ method = '', url = '', rawHeaders }: IncomingMessage): AuthzRequest {
  const authorization: string[] = [];
  const headerNames = new Set<string>();
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = rawHeaders[index]?.toLowerCase() ?? '';
    headerNames.add(name);
    if (name === 'authorization') authorization.push(rawHeaders[index + 1] ?? '');
  }
  return { method: method.toUpperCase(), path: url, authorization, headerNames: [...headerNames] };
}

function answer(response: ServerResponse, decision: AuthzDecision): void {
  if (decision.allowed) {
    const { set, remove } = decision.headers;
    response.writeHead(200, { ...set, [removeHeader]: remove.join(','), 'content-length': 0 }).end();
    return;
  }
  // Envoy takes every 5xx for a failure of ours, which `failure_mode_allow` lets pass.
  const status = decision.httpStatus === 503 ? 403 : decision.httpStatus;
  response.writeHead(status, denialHeaders(decision)).end(denialBody(decision, status));
}
