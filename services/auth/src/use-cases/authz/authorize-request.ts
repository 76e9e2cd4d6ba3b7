import type { AuthzDecision } from '../../domain/authz/authz-decision.ts';
import type { AuthzRequest } from '../../domain/authz/authz-request.ts';

/** Decides whether a request may pass; at once where nothing has to be asked. Never throws or rejects: what cannot be told is denied with 503. */
export type AuthorizeRequest = (request: AuthzRequest) => AuthzDecision | Promise<AuthzDecision>;
