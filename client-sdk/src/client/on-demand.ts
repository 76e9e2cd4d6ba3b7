/**
 * What few calls need, loaded at its first use. One module of several things: bundlers would cut what they
 * share with the rest into a chunk for every combination.
 *
 * @module
 */

export { createAuthorizationFlow } from '../authorization/authorization-flow.ts';
export { authenticateByAssertion } from '../client-auth/authenticate-by-assertion.ts';
export { parseAs } from '../response/parse-as.ts';
export { readOddFields } from '../token/read-odd-fields.ts';
export { readRequestBody } from '../token/read-request-body.ts';
export { logRequest, logResponse } from './debug-log.ts';
export { failureOf } from './failure-of.ts';
export { followRedirects } from './follow-redirects.ts';
export { jsonParams } from './json-params.ts';
export { assertionRequest } from './strategies/assertion-request.ts';
