import type { JsonObject } from '@tollgate/kit/json';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { Factor } from '../users/factor.ts';
import type { User } from '../users/user.ts';
import type { MfaContext } from './context.ts';
import type { Challenge, ChallengeColumns, FactorColumns, VerificationColumns } from './store.ts';

/** Behavior of a type of second factor. */
export interface FactorType {
  /** Value of the claim `amr` after a verification. */
  readonly method: string;
  /** Message of the error for a wrong answer to a challenge. */
  readonly invalidMessage: string;

  /** Makes a factor to be stored, unverified. */
  enroll(
    context: MfaContext,
    enrollment: FactorRequest,
    metadata: RequestMetadata,
  ): Promise<{
    readonly columns: FactorColumns;
    /** Type-specific members of the response. */
    readonly members: JsonObject;
  }>;

  /** Absent if a challenge has no content. */
  challenge?(
    context: MfaContext,
    request: FactorRequest & { readonly factor: Factor },
    metadata: RequestMetadata,
  ): Promise<PreparedChallenge>;

  /**
   * Checks the answer to a challenge. Returns undefined for a wrong one, and otherwise what is to
   * be stored with the verification.
   */
  verify(
    context: MfaContext,
    answer: FactorRequest & { readonly factor: Factor; readonly challenge: Challenge },
    metadata: RequestMetadata,
  ): Promise<VerificationColumns | undefined>;

  /** Whether a wrong answer was right before. */
  isUsed?(challenge: Challenge, body: FactorBody, nowMs: number): boolean;
}

/** Members of request bodies that types of factors read. */
export interface FactorBody {
  readonly issuer?: string | undefined;
  readonly phone?: string | undefined;
  readonly channel?: string | undefined;
  readonly code?: string | undefined;
  readonly webauthn?: { readonly type?: string; readonly credential_response?: object } | undefined;
}

/** A request of a user about a second factor. */
interface FactorRequest {
  readonly user: User;
  /** The parsed body. */
  readonly body: FactorBody;
}

interface PreparedChallenge {
  readonly columns: ChallengeColumns;
  /** Type-specific members of the response. */
  readonly members?: JsonObject;
}
