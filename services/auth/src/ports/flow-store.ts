import type { CodeChallenge } from '../domain/pkce.ts';
import type { User } from '../domain/user.ts';

/** What a flow ends with: the value of `amr` of its session. */
export type FlowMethod = 'email/signup' | 'magiclink' | 'recovery' | 'invite' | 'email_change';

/** A flow that begins. */
export interface NewFlow extends CodeChallenge {
  readonly id: string;
  /** Absent where nobody is known by the address that was given: such a flow never gets a code. */
  readonly userId: string | undefined;
  readonly authenticationMethod: FlowMethod;
  readonly at: Date;
}

/** A flow whose code has been issued. */
export interface Flow extends CodeChallenge {
  readonly id: string;
  readonly authenticationMethod: string;
  readonly createdAt: Date;
  readonly codeIssuedAt: Date | undefined;
}

/** PKCE flows: from the challenge to the code that is exchanged for tokens. */
export interface FlowStore {
  start(flow: NewFlow): Promise<void>;
  /** Gives the latest flow of a user and method its code. Answers false when there is none that waits for one. */
  issueCode(
    of: { readonly userId: string; readonly authenticationMethod: FlowMethod; readonly code: string },
    at: Date,
  ): Promise<boolean>;
  /** The flow of a code and its user, in one statement. */
  findByCode(code: string): Promise<{ readonly flow: Flow; readonly user: User } | undefined>;
  /** Ends a flow. Answers false when somebody else did so first: only one may go on. */
  spend(id: string): Promise<boolean>;
}
