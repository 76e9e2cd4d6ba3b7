import type { credentialKinds } from '../definition/fields.ts';
import type { AccessSpec, PolicySpec } from '../definition/spec.ts';
import { checkBrowser } from './browser.ts';
import { compileResource, type ProtectedResource, resourceAudiences } from './resource.ts';

/** Who may call. */
export type Access =
  | { readonly type: 'Public' }
  | { readonly type: 'Denied' }
  /** All requests are denied until the policy is valid. */
  | { readonly type: 'Invalid' }
  /** Callers with a valid credential that meet all of the conditions. */
  | AuthenticatedAccess;

export interface AuthenticatedAccess {
  readonly type: 'Authenticated';
  /** Any of them. Undefined, as for the lists that follow: no condition. */
  readonly roles?: readonly string[] | undefined;
  /** All of them. */
  readonly scopes?: readonly string[] | undefined;
  /** Any of them. */
  readonly plans?: readonly string[] | undefined;
  readonly assurance: 'aal1' | 'aal2' | 'aal3';
  readonly anonymousUsers: boolean;
  readonly credentials?: readonly (typeof credentialKinds)[number][] | undefined;
  readonly issuers?: readonly string[] | undefined;
  /** Values of `aud`: the token must have any of them. */
  readonly audiences?: readonly string[] | undefined;
  readonly resource?: ProtectedResource | undefined;
  /** Whether a browser without a session goes to the sign-in page. Undefined: no. */
  readonly browser?: 'Redirect';
}

/** Any caller who is not anonymous. */
export const authenticated: AuthenticatedAccess = {
  type: 'Authenticated',
  assurance: 'aal1',
  anonymousUsers: false,
};

const assuranceLevels = { AAL1: 'aal1', AAL2: 'aal2', AAL3: 'aal3' } as const;

/**
 * Compiles an `access`.
 *
 * @param report gets the name of a field, and what is wrong with it
 */
export function compileAccess(
  spec: AccessSpec,
  policy: Pick<PolicySpec, 'hosts'>,
  report: (field: string, message: string) => void,
): Access {
  const { type = 'Authenticated', assurance = 'AAL1', anonymousUsers = false, ...others } = spec;
  const { resource, browser, ...lists } = others;
  if (type === 'Authenticated') {
    const known = resource && compileResource(resource, policy, report);
    // A token for another resource must not be accepted.
    const own = known && { resource: known, audiences: lists.audiences ?? resourceAudiences(known) };
    const compiled = { type, ...lists, ...own, assurance: assuranceLevels[assurance], anonymousUsers };
    if (browser !== 'Redirect') return compiled;
    checkBrowser(spec, policy, report);
    return { ...compiled, browser };
  }
  for (const name of Object.keys(spec))
    if (name !== 'type') report(name, `has no effect with type: ${type}; remove either`);
  return { type };
}
