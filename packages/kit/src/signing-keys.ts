import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  randomBytes,
} from 'node:crypto';

/** How long clients may cache the JWKS. */
export const jwksMaxAgeSeconds = 600;

/** Until all replicas have a changed file: kubelets update Secrets once a minute. */
const replicaSeconds = 120;

/** A hundred RSA keys. */
export const maxKeyFileBytes = 256 * 1024;

/** A key of JWT_KEYS. The times, in seconds, are members of the rotation (RFC 7517 §4). */
export interface StoredKey extends JsonWebKey {
  readonly kid?: string;
  readonly alg?: string;
  readonly key_ops?: readonly string[];
  readonly svc_added_at?: number;
  /** Since when the key signs. */
  readonly svc_signs_at?: number;
  /** Since when the key no longer signs. */
  readonly svc_replaced_at?: number;
}

/** `upcoming`: it is published, and has not signed yet. `verifies`: it signs no longer. */
type KeyState = 'signs' | 'upcoming' | 'verifies';

/** A key without the key itself. Times are Unix times in seconds. */
export interface KeySummary {
  readonly kid: string;
  readonly algorithm: string;
  readonly state: KeyState;
  /** Secrets are not in the JWKS. */
  readonly isPublished: boolean;
  readonly addedAt: number | undefined;
  readonly signsAt: number | undefined;
  readonly replacedAt: number | undefined;
}

type RotationStep = 'new' | 'rotate' | 'retire';

/** The next step, and from when on it is safe. */
export interface NextStep {
  readonly step: RotationStep;
  /** Unix time in seconds. Undefined: at any time. */
  readonly from: number | undefined;
  readonly why: string;
}

/** The time, the tokens and the running server. */
export interface RotationContext {
  readonly nowSeconds: number;
  /** The longest lifetime of a token. Undefined if it is not known. */
  readonly lifetimeSeconds: number | undefined;
  /** Ids of the keys in the JWKS of the running server. Undefined if it was not asked. */
  readonly published?: ReadonlySet<string> | undefined;
  /** The key that the running server signs with. Undefined if it is not known. */
  readonly signing?: string | undefined;
  /** Skips the checks of times and of the running server. */
  readonly isForced: boolean;
}

/** The new keys, or why the step is not possible. */
export type Rotation =
  | {
      readonly ok: true;
      readonly keys: readonly StoredKey[];
      readonly done: string;
      /** Consequences of the step. */
      readonly notes: readonly string[];
    }
  | { readonly ok: false; readonly problem: string };

const refuse = (problem: string): Rotation => ({ ok: false, problem });

/** Parses a JSON array of JWKs. An empty text has no keys. */
export function parseStoredKeys(
  text: string,
):
  | { readonly ok: true; readonly keys: readonly StoredKey[] }
  | { readonly ok: false; readonly problem: string } {
  if (text.trim() === '') return { ok: true, keys: [] };
  let keys: unknown;
  try {
    keys = JSON.parse(text);
  } catch {
    // A parser's message may quote a key.
  }
  if (!Array.isArray(keys)) return { ok: false, problem: 'not a JSON array of JWKs' };
  const stored = keys as readonly StoredKey[]; // findProblem validates the members
  const problem = stored.length === 0 ? undefined : findProblem(stored);
  return problem === undefined ? { ok: true, keys: stored } : { ok: false, problem };
}

/** Why a server would not start with these keys, whatever its settings are. */
function findProblem(keys: readonly StoredKey[]): string | undefined {
  const expect = (what: string) => `invalid keys: expected ${what}`;
  const incomplete = keys.findIndex((key) => !isText(key?.kid) || !isText(key.alg));
  if (incomplete !== -1) return expect(`a kid and an alg in key ${incomplete}`);
  if (new Set(keys.map(({ kid }) => kid)).size < keys.length) return expect('keys with different kids');
  const unreadable = keys.find((key) => !isReadable(key));
  if (unreadable !== undefined) return expect(`a complete key in ${unreadable.kid}`);
  const signing = keys.filter(canSign).length;
  return signing === 1 ? undefined : expect(`exactly one key whose key_ops has "sign", found ${signing}`);
}

function isReadable(key: StoredKey): boolean {
  if (key.kty === 'oct') return isText(key.k);
  try {
    const isPrivate = key.d !== undefined;
    if (isPrivate) createPrivateKey({ key, format: 'jwk' });
    else createPublicKey({ key, format: 'jwk' });
    return isPrivate || !canSign(key);
  } catch {
    return false;
  }
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/**
 * JWT_SECRET as a key. It signs while there are no keys, and verifies its tokens until it is
 * retired.
 */
export function keyOfSecret(secret: string, kid: string): StoredKey {
  const k = Buffer.from(secret, 'utf8').toString('base64url');
  return { kid: kid || 'jwt-secret', alg: 'HS256', kty: 'oct', k, key_ops: ['sign', 'verify'] };
}

/** The algorithms of new keys. The first one is the default. */
export const newKeyAlgorithms = ['ES256', 'RS256', 'EdDSA'] as const;

export type NewKeyAlgorithm = (typeof newKeyAlgorithms)[number];

/** Adds a key that does not sign yet. Without keys, the new one signs. */
export function addKey(
  keys: readonly StoredKey[],
  alg: NewKeyAlgorithm,
  { nowSeconds }: Pick<RotationContext, 'nowSeconds'>,
): Rotation {
  const waiting = keys.find((key) => keyState(key) === 'upcoming');
  if (waiting !== undefined)
    return refuse(`${waiting.kid} was added before and does not sign yet: run signing-keys rotate`);
  const key = generateKey(alg, nowSeconds);
  if (keys.length === 0) {
    const first = { ...key, key_ops: ['sign', 'verify'], svc_signs_at: nowSeconds };
    return { ok: true, keys: [first], done: `added ${key.kid}, which signs`, notes: [] };
  }
  return { ok: true, keys: [...keys, key], done: `added ${key.kid}, which does not sign yet`, notes: [] };
}

/** Signs with the key that was added. The former one verifies its tokens until it is retired. */
export function rotateKeys(keys: readonly StoredKey[], context: RotationContext): Rotation {
  const { nowSeconds, published, isForced } = context;
  const upcoming = keys.find((key) => keyState(key) === 'upcoming');
  if (upcoming === undefined) return refuse('no key was added that does not sign yet: run signing-keys new');
  const kid = String(upcoming.kid);
  if (!isForced && published !== undefined && isPublic(upcoming) && !published.has(kid))
    return refuse(
      `the auth server does not publish ${kid} yet, its JWKS has ${[...published].join(', ') || 'no key'}: give it the file with the new key first, or use --force`,
    );
  const from = publicationEnd(upcoming.svc_added_at);
  if (!isForced && nowSeconds < from)
    return refuse(`caches of the JWKS may lack ${kid} until ${toTime(from)}: wait, or use --force`);
  return {
    ok: true,
    keys: keys.map((key) => {
      if (key === upcoming) return { ...key, key_ops: ['sign', 'verify'], svc_signs_at: nowSeconds };
      return canSign(key) ? { ...key, key_ops: ['verify'], svc_replaced_at: nowSeconds } : key;
    }),
    done: `${kid} signs`,
    notes: [],
  };
}

/** Removes the key with the id, by default all that no longer sign. */
export function retireKeys(
  keys: readonly StoredKey[],
  kid: string | undefined,
  context: RotationContext,
): Rotation {
  const retired = keys.filter((key) =>
    kid === undefined ? key.svc_replaced_at !== undefined : key.kid === kid,
  );
  if (retired.length === 0)
    return refuse(kid === undefined ? 'no key was replaced by signing-keys rotate' : `no key ${kid}`);
  const problem = retired.map((key) => findRetirementProblem(key, context)).find((one) => one !== undefined);
  if (problem !== undefined) return refuse(problem);
  return {
    ok: true,
    keys: keys.filter((key) => !retired.includes(key)),
    done: `removed ${retired.map((key) => key.kid).join(', ')}`,
    notes: [
      'tokens without expiry that it signed (admin token, API keys of clients) are rejected: issue new ones',
    ],
  };
}

function findRetirementProblem(
  key: StoredKey,
  { nowSeconds, lifetimeSeconds, signing, isForced }: RotationContext,
): string | undefined {
  const { kid, svc_replaced_at: replacedAt } = key;
  if (canSign(key)) return `${kid} signs: run signing-keys new and rotate first`;
  // It has signed no token.
  if (isForced || keyState(key) === 'upcoming') return undefined;
  if (signing !== undefined && signing === kid)
    return `the auth server still signs with ${kid}: give it the file of signing-keys rotate first, or use --force`;
  if (replacedAt === undefined)
    return `when ${kid} has signed last is not known: use --force once its tokens have expired`;
  if (lifetimeSeconds === undefined)
    return `how long tokens of ${kid} are valid is not known: give --token-lifetime, or a context with the admin scope settings:read`;
  const end = expiryOfTokens(replacedAt, lifetimeSeconds);
  return nowSeconds < end
    ? `tokens that ${kid} has signed are valid until ${toTime(end)}: wait, or use --force`
    : undefined;
}

/** When all verifiers know a key that was added at that time. */
function publicationEnd(addedAt = 0): number {
  return addedAt + jwksMaxAgeSeconds + replicaSeconds;
}

/** When the last token of a key that was replaced at that time has expired. */
function expiryOfTokens(replacedAt: number, lifetimeSeconds: number): number {
  return replacedAt + lifetimeSeconds + replicaSeconds;
}

/** The next step of the rotation of these keys. */
export function findNextStep(
  keys: readonly Pick<KeySummary, 'kid' | 'state' | 'addedAt' | 'replacedAt'>[],
  lifetimeSeconds: number | undefined,
): NextStep {
  const upcoming = keys.find(({ state }) => state === 'upcoming');
  if (upcoming !== undefined) {
    const from = publicationEnd(upcoming.addedAt);
    return { step: 'rotate', from, why: `replicas and caches of the JWKS learn ${upcoming.kid}` };
  }
  const replaced = keys.filter(({ replacedAt }) => replacedAt !== undefined);
  if (replaced.length === 0) return { step: 'new', from: undefined, why: 'no rotation is under way' };
  const last = Math.max(...replaced.map(({ replacedAt = 0 }) => replacedAt));
  const names = replaced.map(({ kid }) => kid).join(', ');
  return {
    step: 'retire',
    from: lifetimeSeconds === undefined ? undefined : expiryOfTokens(last, lifetimeSeconds),
    why: `tokens of ${names} are valid for their lifetime`,
  };
}

export function summarizeKeys(keys: readonly StoredKey[]): readonly KeySummary[] {
  return keys.map((key) => ({
    kid: String(key.kid),
    algorithm: String(key.alg),
    state: keyState(key),
    isPublished: isPublic(key),
    addedAt: key.svc_added_at,
    signsAt: key.svc_signs_at,
    replacedAt: key.svc_replaced_at,
  }));
}

/** The longest lifetime of tokens that a server with these settings signs. */
export function longestTokenSeconds(settings: {
  readonly jwtExpMs: number;
  readonly oauthServerEnabled: boolean;
  readonly oauthServerClientTokenTtlMs: number;
}): number {
  const ofClients = settings.oauthServerEnabled ? settings.oauthServerClientTokenTtlMs : 0;
  return Math.ceil(Math.max(settings.jwtExpMs, ofClients) / 1000);
}

export function toTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString().replace('.000', '');
}

function keyState(key: StoredKey): KeyState {
  if (canSign(key)) return 'signs';
  return key.svc_added_at !== undefined && key.svc_replaced_at === undefined ? 'upcoming' : 'verifies';
}

function canSign({ key_ops: operations }: StoredKey): boolean {
  return Array.isArray(operations) && operations.includes('sign');
}

function isPublic({ kty }: StoredKey): boolean {
  return kty !== 'oct';
}

function generateKey(alg: NewKeyAlgorithm, nowSeconds: number): StoredKey {
  const kid = `${new Date(nowSeconds * 1000).toISOString().slice(0, 10)}-${randomBytes(4).toString('hex')}`;
  const jwk = generatePair(alg).privateKey.export({ format: 'jwk' });
  return { kid, alg, ...jwk, key_ops: ['verify'], svc_added_at: nowSeconds };
}

function generatePair(alg: NewKeyAlgorithm) {
  switch (alg) {
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' });
    case 'RS256':
      return generateKeyPairSync('rsa', { modulusLength: 2048 });
    case 'EdDSA':
      return generateKeyPairSync('ed25519');
  }
}
