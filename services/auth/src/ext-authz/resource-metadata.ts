import type { Access } from '@tollgate/policies/compile/access';
import type { PolicyTable } from '@tollgate/policies/compile/policy-table';
import { isMetadataPath, type ProtectedResource } from '@tollgate/policies/compile/resource';
import { type MatchedPolicy, matchRequest } from '@tollgate/policies/decide/match-request';
import type { RouteRules } from '@tollgate/policies/routes-file/route-rules';
import { proofAlgorithms } from '../dpop/proof.ts';
import type { AuthzRequest } from './request.ts';
import type { AuthzDenied } from './result.ts';

/** A response to the client that is no denial. */
export interface ResourceAnswer {
  readonly httpStatus: 200 | 204;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface ResourceMetadataOptions {
  readonly rules: { readonly current: RouteRules };
  readonly policies: { readonly current: PolicyTable | undefined } | undefined;
  /** The authorization server. */
  readonly issuer: string;
}

/**
 * Answers requests for the metadata of resources, which tells clients where they get tokens. It is
 * public, whatever the access of its path.
 *
 * @see RFC 9728 §3 https://www.rfc-editor.org/rfc/rfc9728#section-3
 */
export class ResourceMetadata {
  readonly #options: ResourceMetadataOptions;

  constructor(options: ResourceMetadataOptions) {
    this.#options = options;
  }

  /** Undefined for other requests. */
  answer(request: AuthzRequest): ResourceAnswer | undefined {
    if (!isMetadataPath(request.path)) return undefined;
    const { rules, policies, issuer } = this.#options;
    const match = matchRequest(rules.current, request, policies?.current);
    if (!match.ok) return undefined;
    const [path = ''] = request.path.split('?', 1);
    const resource = match.matched.map(({ policy }) => policy.resources?.get(path)).find(Boolean);
    if (resource === undefined) return undefined;
    // Preflight: clients in browsers add headers, such as the version of their protocol.
    if (request.method === 'OPTIONS') return { httpStatus: 204, headers: preflightHeaders, body: '' };
    if (request.method !== 'GET' && request.method !== 'HEAD') return undefined;
    return { httpStatus: 200, headers: documentHeaders, body: JSON.stringify(describe(resource, issuer)) };
  }
}

/** Seconds in which clients may use the document without another request. */
const maxAgeSeconds = 300;

const corsHeaders = { 'access-control-allow-origin': '*' };

const documentHeaders = {
  'content-type': 'application/json',
  'cache-control': `public, max-age=${maxAgeSeconds}`,
  ...corsHeaders,
};

const preflightHeaders = {
  ...corsHeaders,
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': '*',
  'access-control-max-age': '86400',
};

/** @see RFC 9728 §2 https://www.rfc-editor.org/rfc/rfc9728#section-2 */
function describe({ url, name, scopes }: ProtectedResource, issuer: string) {
  return {
    resource: url,
    authorization_servers: [issuer],
    ...(scopes && { scopes_supported: scopes }),
    bearer_methods_supported: ['header'],
    dpop_signing_alg_values_supported: proofAlgorithms,
    ...(name !== undefined && { resource_name: name }),
  };
}

/**
 * Adds to the challenge of a denial where the metadata of its resource is, and the scopes that a
 * client without a token should ask for.
 *
 * @see RFC 9728 §5.1 https://www.rfc-editor.org/rfc/rfc9728#section-5.1
 */
export function challengeWithResource(denial: AuthzDenied, matched: readonly MatchedPolicy[]): AuthzDenied {
  const challenge = denial.headers['www-authenticate'];
  const access = matched.map(({ rule }) => rule.access).find(hasResource);
  if (challenge === undefined || access === undefined) return denial;
  const { resource, scopes } = access;
  const scope = denial.httpStatus === 401 && scopes ? `, scope="${scopes.join(' ')}"` : '';
  const value = `${challenge}, resource_metadata="${resource.metadataUrl}"${scope}`;
  return { ...denial, headers: { ...denial.headers, 'www-authenticate': value } };
}

type ResourceAccess = Extract<Access, { readonly type: 'Authenticated' }> & {
  readonly resource: ProtectedResource;
};

function hasResource(access: Access): access is ResourceAccess {
  return access.type === 'Authenticated' && access.resource !== undefined;
}
