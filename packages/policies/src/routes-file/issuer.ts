import type { Algorithm } from './algorithms.ts';
import type { ClaimMapping } from './claim-mapping.ts';
import type { Predicate } from './predicate.ts';

/** An issuer of the routes file, and what its claims mean. */
export interface IssuerRule {
  readonly definition: IssuerDefinition;
  readonly mapping: ClaimMapping;
  /** Conditions of the kinds of callers, in order. Undefined: it is not tested. */
  readonly kinds: { readonly client?: Condition; readonly user?: Condition };
  /** Whether ids of users start with the name of the issuer. */
  readonly isPrefixed: boolean;
}

interface Condition {
  /** The text of the file. */
  readonly text: string;
  readonly isTrue: Predicate;
}

/** An issuer whose tokens are accepted, as configured. */
export interface IssuerDefinition {
  /** Unique; labels metrics and prefixes ids of users. */
  readonly name: string;
  /**
   * Exact value of `iss`, or with `{tenantid}` the pattern of all tenants. Undefined: that of the
   * Kubernetes cluster, which its API server knows.
   */
  readonly issuer: string | undefined;
  /** URL of the metadata. Undefined: the well-known URL of the issuer. */
  readonly discovery: string | undefined;
  /** URL of the keys. Undefined: that of the metadata. */
  readonly jwksUri: string | undefined;
  /** A token must be for one of them. */
  readonly audiences: readonly string[];
  readonly algorithms: readonly Algorithm[];
  readonly tokenType: TokenType;
  /** Tenants whose tokens are accepted. Undefined: all. */
  readonly tenants: readonly string[] | undefined;
  /** PEM file with the CAs of the issuer's servers. Undefined: those of the system. */
  readonly caFile: string | undefined;
  readonly introspection: IntrospectionDefinition | undefined;
  /** Issuer and keys are those of the cluster that the service runs in. */
  readonly isKubernetes: boolean;
}

/** How tokens that are no JWTs are checked. @see RFC 7662 */
export interface IntrospectionDefinition {
  readonly endpoint: string;
  readonly clientId: string;
  /** File with the secret of the client, so that the rules hold no secrets. */
  readonly secretFile: string;
  /** How long a response is used: a token that is revoked is accepted for as long. */
  readonly cacheMs: number;
}

/**
 * `access`: access tokens, with the type of RFC 9068 or without. `at+jwt`: only with that type.
 * `id`: ID tokens of OpenID Connect.
 */
export const tokenTypes = ['access', 'at+jwt', 'id'] as const;

export type TokenType = (typeof tokenTypes)[number];
