import { type ChallengeMembers, type CodeChallenge, parseChallenge } from '../../domain/pkce.ts';
import { errors } from '../../errors.ts';

/** What a body says of PKCE; undefined when it says nothing. @throws AppError `validation_failed`. */
export function readCodeChallenge(members: ChallengeMembers): CodeChallenge | undefined {
  const parsed = parseChallenge(members);
  if (!parsed.ok) throw errors.validation_failed({ message: parsed.message });
  return parsed.challenge;
}
