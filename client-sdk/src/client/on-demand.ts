/**
 * What few clients need, loaded at its first use: signing, and the code flow. Only what runs before a request is sent may be
 * here. A chunk that cannot be loaded later (a deployment replaced it) would turn an answer into a failure of another kind,
 * and lose the tokens in it. One module of several things: bundlers would cut what they share with the rest into a chunk for
 * every combination.
 *
 * @module
 */

export { createAuthorizationFlow } from '../authorization/authorization-flow.ts';
export { authenticateByAssertion } from '../client-auth/authenticate-by-assertion.ts';
export { createIdTokenValidator } from '../id-token.ts';
export { assertionRequest } from './strategies/assertion-request.ts';
