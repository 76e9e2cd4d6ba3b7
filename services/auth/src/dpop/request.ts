import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Settings } from '../config/settings.ts';
import { OAuthError } from '../errors.ts';
import { proofAlgorithms } from './proof.ts';
import type { DpopProofs, ProofResult } from './proofs.ts';

interface ProofContext {
  readonly dpop: Pick<DpopProofs, 'check'>;
  readonly settings: Pick<Settings, 'apiExternalUrl'>;
}

export const nonceHeader = 'dpop-nonce';

/**
 * The thumbprint of the key that a client proves to have. Undefined without a proof.
 *
 * @throws OAuthError `invalid_dpop_proof`, `use_dpop_nonce`
 * @see RFC 9449 §5 https://www.rfc-editor.org/rfc/rfc9449#section-5
 */
export async function readProof(
  { dpop, settings }: ProofContext,
  request: FastifyRequest,
  reply: FastifyReply,
): Promise<string | undefined> {
  const header = proofHeader(request);
  if (header === undefined) return undefined;
  const result = await dpop.check(header, { method: request.method, url: requestUrl(request, settings) });
  if (result.nonce !== undefined) reply.header(nonceHeader, result.nonce);
  if (!result.ok) throw new OAuthError(result.error, describe(result.reason));
  return result.thumbprint;
}

/**
 * Checks the proof of a request with an access token that is bound to a key.
 *
 * @throws OAuthError `invalid_dpop_proof`, `use_dpop_nonce`
 * @see RFC 9449 §7.1 https://www.rfc-editor.org/rfc/rfc9449#section-7.1
 */
export async function proveToken(
  { dpop, settings }: ProofContext,
  request: FastifyRequest,
  token: { readonly accessToken: string; readonly thumbprint: string },
): Promise<void> {
  const expected = { ...token, method: request.method, url: requestUrl(request, settings) };
  const result = await dpop.check(proofHeader(request), expected);
  if (result.ok) return;
  throw new OAuthError(result.error, describe(result.reason), 401, challengeHeaders(result));
}

/** The message for both. */
export const wrongSchemeMessage = 'Tokens with cnf.jkt, and only they, need the scheme DPoP and a proof';

/**
 * The error for a bound token without the scheme `DPoP`, and for another token with it.
 *
 * @see RFC 9449 §7.1, §7.2
 */
export function wrongScheme(): OAuthError {
  return new OAuthError('invalid_token', wrongSchemeMessage, 401, {
    'www-authenticate': dpopChallenge('invalid_token'),
  });
}

/** Node joins repeated headers with commas, which no proof has. */
function proofHeader({ headers: { dpop } }: FastifyRequest): string | undefined {
  return Array.isArray(dpop) ? dpop.join() : dpop;
}

function requestUrl({ url }: FastifyRequest, { apiExternalUrl }: ProofContext['settings']): string {
  return `${apiExternalUrl.replace(/\/+$/, '')}${url}`;
}

function describe(reason: string): string {
  return `The DPoP proof is not accepted: ${reason}`;
}

/** The value of `WWW-Authenticate`. @see RFC 9449 §7.1 */
function dpopChallenge(error: string): string {
  return `DPoP error="${error}", algs="${proofAlgorithms.join(' ')}"`;
}

function challengeHeaders({ error, nonce }: Extract<ProofResult, { ok: false }>) {
  return { 'www-authenticate': dpopChallenge(error), ...(nonce !== undefined && { [nonceHeader]: nonce }) };
}
