import { readCookie, setCookie } from '../http/cookies.ts';
import { type Account, resumeAccount, type Visit } from './visit.ts';

/** Accounts besides the current one. More would be no convenience, and cost a query each. */
const maxOthers = 4;
/** Has the refresh tokens of their sessions. */
const accountsCookie = { name: 'accounts', form: /^[\w-]{12,128}(?:\.[\w-]{12,128}){0,3}$/ } as const;

function readTokens({ request, context: { settings } }: Visit): readonly string[] {
  return readCookie(request, { ...accountsCookie, settings })?.split('.') ?? [];
}

function writeTokens({ reply, context: { settings } }: Visit, tokens: readonly string[]): void {
  const value = tokens.slice(0, maxOthers).join('.');
  setCookie(reply, [accountsCookie.name, value], { settings, ...(value === '' && { maxAgeSeconds: 0 }) });
}

/** Whether further accounts may be signed in. */
export function hasOtherAccounts(visit: Visit): boolean {
  return readTokens(visit).length > 0;
}

/** Keeps the current account signed in while another one takes its place. */
export function rememberAccount(visit: Visit): void {
  writeTokens(visit, [visit.refreshToken, ...readTokens(visit)]);
}

/** The further accounts, one a user. Those whose session has ended are forgotten. */
export async function openOtherAccounts(visit: Visit): Promise<readonly Account[]> {
  const tokens = readTokens(visit);
  if (tokens.length === 0) return [];
  const known = new Set(visit.owner && [visit.owner.user.id]);
  const accounts: Account[] = [];
  for (const token of tokens) {
    const account = await resumeAccount(visit, token);
    if (account === undefined || known.has(account.user.id)) continue;
    known.add(account.user.id);
    accounts.push(account);
  }
  writeAccounts(visit, accounts);
  return accounts;
}

/** Keeps these further accounts, the latest first. */
export function writeAccounts(visit: Visit, accounts: readonly Account[]): void {
  writeTokens(
    visit,
    accounts.map(({ refreshToken }) => refreshToken),
  );
}
