import { createHash } from 'node:crypto';
import { RecentlyUsed } from '@tollgate/kit/collections';
import { algorithmNames } from '@tollgate/policies/routes-file/algorithms';
import type { IssuerDefinition } from '@tollgate/policies/routes-file/issuer';
import type { Settings } from '../config/settings.ts';
import { parseKeySet, type VerificationKey } from '../issuers/key-set.ts';
import { type DecodedJwt, decodeJwt, verifyToken } from '../issuers/verify.ts';
import { credentialVersion } from '../keys/client-tokens.ts';
import { issuerUrl } from '../keys/jwt.ts';
import { fetchText } from '../outbound/fetch.ts';
import type { OAuthClient } from './client-store.ts';
import type { OAuthContext } from './clients.ts';
import { clientIdentifier } from './find-client.ts';

/** @see RFC 7523 §2.2 https://www.rfc-editor.org/rfc/rfc7523#section-2.2 */
export const assertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer';

/** Assertions are made for one request. */
const maxLifetimeSeconds = 5 * 60;
const clockToleranceSeconds = 30;
/** A constant: a spacing that shrinks with the life of an assertion would end before it. */
const spacingMs = (maxLifetimeSeconds + clockToleranceSeconds) * 1000;
const maxIdChars = 255;

const maxKeySets = 1_000;
const maxKeySetBytes = 128 * 1024;
const fetchTimeoutMs = 5_000;
/** Clients publish new keys before they sign with them. */
const refreshMs = 10 * 60 * 1000;
/** Interval of loads that unknown keys cause, which anyone can name. */
const cooldownMs = 30 * 1000;

export function tokenEndpoint({ apiExternalUrl }: Pick<Settings, 'apiExternalUrl'>): string {
  return `${apiExternalUrl.replace(/\/+$/, '')}/oauth/token`;
}

/** Keys of a client. */
interface KeySet {
  readonly keys: readonly VerificationKey[];
  /** When they were loaded, or that was last tried. */
  readonly loadedMs: number;
}

/**
 * Verifies signed assertions of clients, each of which is accepted once.
 *
 * @see RFC 7523 §3 https://www.rfc-editor.org/rfc/rfc7523#section-3
 */
export class ClientAssertions {
  readonly #context: OAuthContext;
  /** Keyed by the version of the credentials, which contains the location of the keys. */
  readonly #keySets = new RecentlyUsed<KeySet>({ capacity: maxKeySets });
  readonly #loading = new Map<string, Promise<KeySet>>();

  constructor(context: OAuthContext) {
    this.#context = context;
  }

  /** The client that an assertion claims to be of, before it is verified. */
  subjectOf(assertion: string): string | undefined {
    const { iss, sub } = decodeJwt(assertion)?.claims ?? {};
    return typeof sub === 'string' && iss === sub ? sub : undefined;
  }

  async verify(client: OAuthClient, assertion: string): Promise<boolean> {
    const jwt = decodeJwt(assertion);
    const problem = jwt === undefined ? 'it is no JWT' : await this.#findProblem(client, jwt);
    if (problem === undefined) return true;
    this.#context.logger.debug({ client_id: client.id, reason: problem }, 'rejected a client assertion');
    return false;
  }

  async #findProblem(client: OAuthClient, jwt: DecodedJwt): Promise<string | undefined> {
    const { settings, limiter, nowMs } = this.#context;
    const now = nowMs();
    const { aud, exp, jti } = jwt.claims;
    // A list could name other servers, to which the client did not mean to authenticate.
    if (Array.isArray(aud) && aud.length !== 1) return 'aud has more than one value';
    if (typeof jti !== 'string' || jti === '' || jti.length > maxIdChars) return 'it has no usable jti';
    if (typeof exp !== 'number' || exp > now / 1000 + maxLifetimeSeconds + clockToleranceSeconds)
      return `exp is more than ${maxLifetimeSeconds} s ahead`;
    const issuer = clientIdentifier(client);
    const definition = assertionDefinition(issuer, settings);
    const check = (keys: readonly VerificationKey[]) =>
      verifyToken(jwt, { definition, issuer, keys, nowMs: now });
    const known = await this.#keys(client);
    let verified = check(known);
    if (!verified.ok && verified.isKeyUnknown && client.jwks_uri !== null) {
      const loaded = await this.#keys(client, { maxAgeMs: cooldownMs });
      if (loaded !== known) verified = check(loaded);
    }
    if (!verified.ok) return verified.reason;
    // Last: only assertions of the client are stored.
    const key = createHash('sha256').update(`${client.id} ${jti}`).digest('base64url');
    const use = await limiter.takeSpaced('client_assertion', { key, spacingMs }, now);
    return use.allowed ? undefined : 'its jti was used before';
  }

  async #keys(client: OAuthClient, { maxAgeMs = refreshMs } = {}): Promise<readonly VerificationKey[]> {
    const name = credentialVersion(client);
    const known = this.#keySets.get(name);
    const ageMs = this.#context.nowMs() - (known?.loadedMs ?? Number.NEGATIVE_INFINITY);
    if (known !== undefined && (client.jwks_uri === null || (ageMs >= 0 && ageMs < maxAgeMs)))
      return known.keys;
    const loading = this.#loading.get(name) ?? this.#load(client, name, known);
    this.#loading.set(name, loading);
    try {
      return (await loading).keys;
    } finally {
      if (this.#loading.get(name) === loading) this.#loading.delete(name);
    }
  }

  /** While the keys cannot be loaded, the last ones stay. */
  async #load(client: OAuthClient, name: string, known: KeySet | undefined): Promise<KeySet> {
    const { settings, logger, nowMs } = this.#context;
    const loadedMs = nowMs();
    const { jwks, jwks_uri: uri } = client;
    let keys = known?.keys ?? [];
    try {
      const text =
        uri === null
          ? JSON.stringify(jwks)
          : await fetchText(new URL(uri), {
              privateHosts: settings.oauthServerPrivateHosts,
              timeoutMs: fetchTimeoutMs,
              maxBytes: maxKeySetBytes,
              requiresHttps: true,
              headers: { accept: 'application/json' },
            });
      keys = parseKeySet(text).keys;
    } catch (error) {
      logger.warn({ err: error, client_id: client.id }, 'failed to load the keys of a client');
    }
    const keySet = { keys, loadedMs };
    this.#keySets.set(name, keySet);
    return keySet;
  }
}

/** A client is the issuer of its assertions. */
function assertionDefinition(
  clientId: string,
  settings: Pick<Settings, 'jwtIssuer' | 'apiExternalUrl'>,
): IssuerDefinition {
  return {
    name: clientId,
    issuer: clientId,
    audiences: [issuerUrl(settings), tokenEndpoint(settings)],
    algorithms: algorithmNames,
    tokenType: 'access',
    discovery: undefined,
    jwksUri: undefined,
    tenants: undefined,
    caFile: undefined,
    introspection: undefined,
    isKubernetes: false,
  };
}
