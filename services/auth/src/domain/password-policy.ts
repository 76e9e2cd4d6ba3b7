/** What is wrong with a password. */
export interface PasswordProblem {
  readonly reason: 'length' | 'characters' | 'pwned';
  readonly message: string;
}

/** The settings that say what a password must be like. */
export interface PasswordPolicy {
  readonly passwordMinLength: number;
  readonly passwordRequiredCharacters: string;
}

/** Nobody may ask for less. */
const leastLength = 6;
/** What bcrypt takes in; hashes of other servers are verified with it. */
export const maxPasswordBytes = 72;

/** Problems of a password, none when it is good enough. */
function passwordProblems(password: string, policy: PasswordPolicy, isLeaked: boolean): PasswordProblem[] {
  const problems: PasswordProblem[] = [];
  const minLength = Math.max(leastLength, policy.passwordMinLength);
  if ([...password].length < minLength)
    problems.push({ reason: 'length', message: `Password should be at least ${minLength} characters.` });
  const sets = characterSets(policy.passwordRequiredCharacters);
  if (sets.some((set) => ![...password].some((character) => set.includes(character)))) {
    const message = `Password should contain at least one character of each: ${sets.join(', ')}.`;
    problems.push({ reason: 'characters', message });
  }
  if (isLeaked)
    problems.push({ reason: 'pwned', message: 'Password is known from leaks, please choose another one.' });
  return problems;
}

/** What a password lacks, as callers are told. */
export interface PasswordWeakness {
  readonly message: string;
  readonly reasons: readonly PasswordProblem['reason'][];
}

/** What a password lacks by the policy of today; undefined for one that is good enough. */
export function passwordWeakness(
  password: string,
  policy: PasswordPolicy,
  { isLeaked }: { readonly isLeaked: boolean },
): PasswordWeakness | undefined {
  const problems = passwordProblems(password, policy, isLeaked);
  if (problems.length === 0) return undefined;
  return {
    message: problems.map(({ message }) => message).join(' '),
    reasons: problems.map(({ reason }) => reason),
  };
}

/** Splits at `:`; `\:` is a colon. */
function characterSets(text: string): string[] {
  return text
    .replaceAll('\\:', '\0')
    .split(':')
    .map((set) => set.replaceAll('\0', ':'))
    .filter((set) => set !== '');
}
