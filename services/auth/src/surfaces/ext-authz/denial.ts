import type { AuthzDenied } from '../../domain/authz/authz-decision.ts';

/** The body of a refusal, in the form of the API's errors. */
export function denialBody({ errorCode, message }: AuthzDenied, httpStatus: number): string {
  return JSON.stringify({ code: httpStatus, error_code: errorCode, msg: message });
}

/** The headers of a refusal. */
export function denialHeaders({ headers }: AuthzDenied): Readonly<Record<string, string>> {
  return { 'content-type': 'application/json', ...headers };
}
