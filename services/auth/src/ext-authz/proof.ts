import { FailureLog, type Logger } from '@tollgate/kit/logger';
import type { Settings } from '../config/settings.ts';
import type { DpopProofs } from '../dpop/proofs.ts';
import { isSecure } from '../http/cookies.ts';
import type { Caller } from './caller.ts';
import { parseBearer } from './credentials.ts';
import { invalidProof, unavailable, wrongScheme } from './denials.ts';
import type { KnownCaller } from './identity-headers.ts';
import { readInTime } from './read-in-time.ts';
import type { AuthzRequest } from './request.ts';

/** Reads the header `DPoP`, with the values of several joined by commas. */
export type ReadProof = () => string | undefined;

interface ProofCheckerContext {
  readonly proofs: Pick<DpopProofs, 'check'>;
  readonly settings: Pick<Settings, 'apiExternalUrl'>;
  readonly logger: Logger;
}

interface ProofCheck {
  readonly request: AuthzRequest;
  readonly readProof: ReadProof;
  readonly timeoutMs: number;
}

const dpopScheme = /^dpop(?: |$)/i;

/** Whether a request presents its token with the scheme `DPoP`. */
export function usesDpop({ authorization }: Pick<AuthzRequest, 'authorization'>): boolean {
  return dpopScheme.test(authorization[0] ?? '');
}

/** Whether the token of a caller is bound to a key, or presented as if it was. */
export function needsProof(caller: Caller, request: AuthzRequest): caller is KnownCaller {
  return caller.ok && (caller.thumbprint !== undefined || usesDpop(request));
}

/**
 * Checks proofs of possession. Each request needs its own, also if its token is cached.
 *
 * @see RFC 9449 §7 https://www.rfc-editor.org/rfc/rfc9449#section-7
 */
export class ProofChecker {
  readonly #context: ProofCheckerContext;
  readonly #failures: FailureLog;

  constructor(context: ProofCheckerContext) {
    this.#context = context;
    const message = 'failed to check a proof of possession, request denied';
    this.#failures = new FailureLog({ logger: context.logger, level: 'error', message });
  }

  /** The caller, or the denial. Never rejects. */
  async check(caller: KnownCaller, { request, readProof, timeoutMs }: ProofCheck): Promise<Caller> {
    const { thumbprint } = caller;
    const bearer = parseBearer(request.authorization);
    if (thumbprint === undefined || bearer === undefined || 'reason' in bearer || !usesDpop(request))
      return caller.refuse(wrongScheme());
    const { method, path, host } = request;
    const scheme = isSecure(this.#context.settings) ? 'https' : 'http';
    const expected = {
      ...{ method, thumbprint, accessToken: bearer.token },
      url: host === '' ? undefined : `${scheme}://${host}${path}`,
    };
    try {
      const checking = this.#context.proofs.check(readProof(), expected);
      const result = await readInTime(checking, timeoutMs);
      return result.ok ? caller : caller.refuse(invalidProof(result));
    } catch (error) {
      this.#failures.log(error);
      return caller.refuse(unavailable());
    }
  }
}
