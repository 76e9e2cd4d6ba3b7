/** How a code challenge is made of its verifier. @see RFC 7636 §4.2 https://www.rfc-editor.org/rfc/rfc7636#section-4.2 */
export type ChallengeMethod = 's256' | 'plain';

/** What a client keeps the verifier of: who presents that verifier is the one who began. */
export interface CodeChallenge {
  readonly challenge: string;
  readonly method: ChallengeMethod;
}

/** How tokens get back to the client: in the fragment of a redirect, or for a code that takes a verifier to exchange. */
export type FlowType = 'implicit' | 'pkce';

/** The members of a body that ask for PKCE. */
export interface ChallengeMembers {
  readonly code_challenge?: string | undefined;
  readonly code_challenge_method?: string | undefined;
}

/** A challenge, none, or what is wrong with it. */
export type ParsedChallenge =
  | { readonly ok: true; readonly challenge: CodeChallenge | undefined }
  | { readonly ok: false; readonly message: string };

/** Bounds and letters of RFC 7636 §4.2. */
const minChallengeChars = 43;
const maxChallengeChars = 128;
const challengeForm = /^[a-zA-Z0-9._~-]*$/;

/** Begins the hash of a token whose link answers a code. */
export const pkcePrefix = 'pkce_';

/** How long a code that was issued may be exchanged, and a flow without one may last: 5 minutes. */
export const flowLifeMs = 300_000;

/** Reads what a body says of PKCE; an empty text counts as absent. */
export function parseChallenge(members: ChallengeMembers): ParsedChallenge {
  const { code_challenge: challenge = '', code_challenge_method: methodText = '' } = members;
  if (challenge === '' && methodText === '') return { ok: true, challenge: undefined };
  if (challenge === '' || methodText === '')
    return refuse('PKCE takes both code_challenge and code_challenge_method, or neither of them');
  const method = methodText.toLowerCase();
  if (method !== 's256' && method !== 'plain') return refuse('code_challenge_method has to be s256 or plain');
  if (challenge.length < minChallengeChars || challenge.length > maxChallengeChars)
    return refuse(`code_challenge has to have ${minChallengeChars} to ${maxChallengeChars} characters`);
  if (!challengeForm.test(challenge))
    return refuse('code_challenge may have letters, digits and the characters - . _ ~ only');
  return { ok: true, challenge: { challenge, method } };
}

/** The flow that a challenge asks for. */
export function flowOf(challenge: CodeChallenge | undefined): FlowType {
  return challenge === undefined ? 'implicit' : 'pkce';
}

/** May the code still be exchanged? Its time begins when it is issued: until then the link has waited in a mailbox. */
export function isFlowOver(
  flow: { readonly createdAt: Date; readonly codeIssuedAt: Date | undefined },
  nowMs: number,
): boolean {
  return (flow.codeIssuedAt ?? flow.createdAt).getTime() + flowLifeMs <= nowMs;
}

function refuse(message: string): ParsedChallenge {
  return { ok: false, message };
}
