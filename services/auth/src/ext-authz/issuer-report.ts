import type { JsonObject } from '@tollgate/kit/json';
import type { ClaimMapping } from '@tollgate/policies/routes-file/claim-mapping';
import { formatClaimPath } from '@tollgate/policies/routes-file/claim-path';
import type { IssuerRule } from '@tollgate/policies/routes-file/issuer';
import type { IssuerState, Issuers } from '../issuers/issuers.ts';
import type { KnownCaller } from './identity-headers.ts';

interface IssuerReportOptions {
  /** The routes file, which is the only place of issuers. Undefined: there is none. */
  readonly file: string | undefined;
  readonly rules: { readonly current: { readonly issuers: readonly IssuerRule[] } };
  readonly issuers: Pick<Issuers<KnownCaller>, 'find'>;
}

/** Issuers whose tokens this process accepts, and the state of their keys, as JSON. */
export class IssuerReport {
  readonly #options: IssuerReportOptions;

  constructor(options: IssuerReportOptions) {
    this.#options = options;
  }

  list(): JsonObject {
    const { file, rules, issuers } = this.#options;
    return {
      ...(file !== undefined && { file }),
      issuers: rules.current.issuers.map((rule) => ({
        ...describeRule(rule),
        ...describeState(issuers.find(rule.definition.name)),
      })),
    };
  }
}

function describeRule({ definition, mapping, kinds, isPrefixed }: IssuerRule): JsonObject {
  const { issuer, discovery, jwksUri, tenants, introspection } = definition;
  return {
    name: definition.name,
    ...(issuer !== undefined && { issuer }),
    ...(discovery !== undefined && { discovery }),
    ...(jwksUri !== undefined && { jwks_uri: jwksUri }),
    audiences: [...definition.audiences],
    algorithms: [...definition.algorithms],
    token_type: definition.tokenType,
    ...(tenants !== undefined && { tenants: [...tenants] }),
    kubernetes: definition.isKubernetes,
    prefix: isPrefixed ? 'name' : 'none',
    claims: describeClaims(mapping),
    kinds: {
      ...(kinds.client !== undefined && { client: kinds.client.text }),
      ...(kinds.user !== undefined && { user: kinds.user.text }),
    },
    ...(introspection !== undefined && {
      introspection: { endpoint: introspection.endpoint, client_id: introspection.clientId },
    }),
  };
}

/** Paths of claims by attribute, as in the file. */
function describeClaims({ attributes, added }: ClaimMapping): JsonObject {
  return Object.fromEntries(
    [...attributes, ...added].map(([name, { path }]) => [name, formatClaimPath(path)]),
  );
}

function describeState(state: IssuerState | undefined): JsonObject {
  if (state === undefined) return {};
  const { keys, usage } = state;
  const { current, loadedAtMs, lastFailure, isDown } = keys;
  return {
    keys: {
      current: loadedAtMs !== undefined && !isDown,
      ...(loadedAtMs !== undefined && { loaded_at: new Date(loadedAtMs).toISOString() }),
      ...(lastFailure !== undefined && {
        failed_at: new Date(lastFailure.atMs).toISOString(),
        problem: lastFailure.problem,
      }),
      ...(current !== undefined && { issuer: current.issuer, jwks_uri: current.jwksUri }),
      usable: (current?.keys ?? []).map(({ kid, kty, crv, alg }) => ({
        ...(kid !== undefined && { kid }),
        kty,
        ...(crv !== undefined && { crv }),
        ...(alg !== undefined && { alg }),
      })),
      ignored: (current?.ignored ?? []).map(({ kid, reason }) => ({ kid, reason })),
    },
    tokens: { ...usage.tokens },
    ...(usage.lastUsedMs !== undefined && { last_used_at: new Date(usage.lastUsedMs).toISOString() }),
  };
}
