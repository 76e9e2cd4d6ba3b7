import { createHash } from 'node:crypto';
import type { Settings } from '../config/settings.ts';
import { DpopNonces } from './nonces.ts';
import { clockToleranceMs, maxAgeMs, type ProvenRequest, verifyProof } from './proof.ts';
import type { DpopProofStore } from './store.ts';

interface DpopProofsOptions {
  readonly store: { readonly dpopProofs: Pick<DpopProofStore, 'use'> };
  readonly settings: Pick<
    Settings,
    'jwtSecret' | 'jwtIssuer' | 'apiExternalUrl' | 'oauthServerRequireDpopNonce'
  >;
  readonly nowMs: () => number;
  /** A request may pass the gateway, and then the API: both check its proof. */
  readonly verifier: 'api' | 'gateway';
}

/** `nonce`: the response has it, because the client needs a new one. */
export type ProofResult =
  | { readonly ok: true; readonly thumbprint: string; readonly nonce?: string }
  | {
      readonly ok: false;
      readonly error: 'invalid_dpop_proof' | 'use_dpop_nonce';
      readonly reason: string;
      readonly nonce?: string;
    };

/**
 * Checks proofs of possession, each of which is accepted once by all replicas together.
 *
 * @see RFC 9449 https://www.rfc-editor.org/rfc/rfc9449
 */
export class DpopProofs {
  readonly #options: DpopProofsOptions;
  readonly #nonces: DpopNonces;

  constructor(options: DpopProofsOptions) {
    this.#options = options;
    this.#nonces = new DpopNonces(options.settings);
  }

  /** @param header the header `DPoP`, with the values of several joined by commas */
  async check(header: string | undefined, request: ProvenRequest): Promise<ProofResult> {
    const { settings, store, nowMs, verifier } = this.#options;
    const now = nowMs();
    if (header === undefined) return invalid('the request has no header DPoP');
    const verified = verifyProof(header, request, now);
    if (!verified.ok) return invalid(verified.reason);
    const { thumbprint, jti, nonce, issuedAtMs } = verified.proof;
    const current = this.#nonces.current(now);
    const { oauthServerRequireDpopNonce: isRequired } = settings;
    if (nonce === undefined ? isRequired : !this.#nonces.isValid(nonce, now)) {
      const reason = 'its nonce must be that of DPoP-Nonce';
      return { ok: false, error: 'use_dpop_nonce', reason, nonce: current };
    }
    // Last: only proofs that would be accepted are stored.
    const isFirstUse = await store.dpopProofs.use({
      digest: createHash('sha256').update(`${verifier} ${thumbprint} ${jti}`).digest('base64url'),
      usedAt: new Date(now),
      // The clock of another replica may be behind.
      expiresAt: new Date(issuedAtMs + maxAgeMs + clockToleranceMs),
    });
    if (!isFirstUse) return invalid('its jti was used before');
    return { ok: true, thumbprint, ...(isRequired && nonce !== current && { nonce: current }) };
  }
}

function invalid(reason: string): ProofResult {
  return { ok: false, error: 'invalid_dpop_proof', reason };
}
