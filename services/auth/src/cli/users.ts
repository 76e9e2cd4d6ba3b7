import { encodeCursor, parseCursor } from '../admin/list-pages.ts';
import { filterQuery, readFilter, readOrder } from '../admin/user-list.ts';
import { updateUser } from '../admin/users.ts';
import type { Context } from '../app/context.ts';
import { auditEntry } from '../audit/audit-log.ts';
import { getFactor, removeFactor } from '../mfa/factors.ts';
import { checkPassword } from '../passwords/passwords.ts';
import { userAuditEntry } from '../sessions/admin-request.ts';
import type { Factor } from '../users/factor.ts';
import { toUserJson, type User } from '../users/user.ts';
import type { Command, CommandFlags } from './arguments.ts';
import { CommandError, findUser, metadataNow, operator, withContext } from './operator.ts';
import { readPassword } from './password.ts';
import { formatTable } from './routes.ts';

/** `users list`: a table or JSON lines; the cursor of the next page on standard error. */
export const listUsersCommand: Command = ({ environmentFiles, flags }) =>
  withContext(environmentFiles, async ({ store, settings }) => {
    const query = toQuery(flags);
    const filter = { ...readFilter(query), aud: flags.aud ?? settings.jwtAud };
    const page = parseCursor({ cursor: flags.cursor ?? '', limit: flags.limit ?? '' });
    const { items, next } = await store.users.listAfter(filter, { order: readOrder(query.sort), ...page });
    if (next) process.stderr.write(`more users: --cursor ${encodeCursor(next)}\n`);
    if (flags.json === true) return items.map((user) => JSON.stringify(toUserJson(user))).join('\n');
    const header = ['ID', 'EMAIL OR PHONE', 'ROLE', 'PLAN', 'CREATED', 'LAST SIGN-IN', 'STATE'];
    return formatTable([header, ...items.map((user) => toRow(user))]).trimEnd();
  });

/** The query of the admin API that has the flags. */
function toQuery(flags: CommandFlags): Readonly<Record<string, string>> & { readonly sort?: string } {
  const given: Readonly<Record<string, unknown>> = { ...flags };
  return Object.fromEntries(
    Object.keys(filterQuery).flatMap((name) => {
      const value = given[name.replaceAll('_', '-')];
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );
}

function toRow(user: User): string[] {
  const contact = user.email || user.phone || '-';
  const signedIn = user.lastSignInAt?.toISOString().slice(0, 16) ?? 'never';
  return [
    user.id,
    contact,
    user.role,
    planOf(user) ?? '-',
    user.createdAt.toISOString().slice(0, 10),
    signedIn,
    stateOf(user),
  ].map(printable);
}

function stateOf({ bannedUntil, emailConfirmedAt, phoneConfirmedAt, isAnonymous }: User): string {
  if (bannedUntil !== undefined && bannedUntil.getTime() > Date.now())
    return `banned until ${bannedUntil.toISOString().slice(0, 10)}`;
  if (isAnonymous) return 'anonymous';
  return emailConfirmedAt === undefined && phoneConfirmedAt === undefined ? 'unconfirmed' : 'active';
}

/** Users choose some of these texts, and a terminal obeys control characters. */
function printable(text: string): string {
  return text.replaceAll(/\p{C}/gu, '?');
}

function planOf({ appMetadata: { plan } }: User): string | undefined {
  return typeof plan === 'string' && plan !== '' ? plan : undefined;
}

/** Runs `work` for the user of the first argument, and prints its result. */
function forUser(
  work: (
    context: Context,
    user: User,
    options: { readonly args: readonly string[]; readonly flags: CommandFlags },
  ) => Promise<string>,
): Command {
  return ({ environmentFiles, args: [name = '', ...args], flags }) =>
    withContext(environmentFiles, async (context) =>
      work(context, await findUser(context, name, flags.aud), { args, flags }),
    );
}

function request() {
  return { actor: operator, metadata: metadataNow() };
}

/** `users get` */
export const getUserCommand = forUser(async (_context, user) => JSON.stringify(toUserJson(user), null, 2));

const defaultBan = `${100 * 365 * 24}h`;

/** `users ban`: prints the end of the ban. */
export const banUserCommand = forUser(async (context, { id }, { flags }) => {
  const banned = await updateUser(context, id, { banDuration: flags.for ?? defaultBan }, request());
  return `${id} is banned until ${banned.bannedUntil?.toISOString() ?? '-'}`;
});

/** `users unban` */
export const unbanUserCommand = forUser(async (context, { id }) => {
  await updateUser(context, id, { banDuration: 'none' }, request());
  return `${id} is not banned`;
});

/** `users set-password`: applies the password policy. */
export const setPasswordCommand = forUser(async (context, { id }) => {
  const password = await readPassword();
  await checkPassword(context, password, []);
  await updateUser(context, id, { password }, request());
  return `${id} has a new password, and no session`;
});

/** `users sign-out` */
export const signOutCommand = forUser(async ({ store }, { id }) => {
  const entry = auditEntry(operator, 'logout', { metadata: metadataNow(), traits: { user_id: id } });
  await store.sessions.end('global', { userId: id, sessionId: undefined }, entry);
  return `${id} has no session. Access tokens end at their expiry where sessions are not checked`;
});

/** `users reset-factor`: all second factors, or one. Recovery codes go with the last one. */
export const resetFactorCommand = forUser(async (context, user, { args: [factorId] }) => {
  const factors = factorId === undefined ? user.factors : [getFactor(user, factorId)];
  const ordered = factors.toSorted((a, b) => Number(isCode(a)) - Number(isCode(b)));
  for (const factor of ordered) await resetFactor(context, user, factor);
  return factors.length === 0
    ? `${user.id} has no second factor`
    : `removed from ${user.id}: ${factors.map(({ type }) => type).join(', ')}`;
});

function isCode({ type }: Factor): boolean {
  return type === 'recovery_code';
}

async function resetFactor(context: Context, user: User, factor: Factor): Promise<void> {
  // Recovery codes are gone with the last other factor.
  const current = await context.store.users.findById(user.id);
  if (current?.factors.some(({ id }) => id === factor.id) !== true) return;
  const audit = ({ id, type }: Factor) =>
    userAuditEntry(request(), 'factor_deleted', user, { factor_id: id, factor_type: type });
  await removeFactor(context, { user: current, factor }, { at: new Date(), audit });
}

/** `users plan`: prints the plan, or sets it. */
export const planCommand = forUser(async (context, user, { args: [plan], flags }) => {
  if (plan !== undefined && flags.remove === true)
    throw new CommandError('either a plan or --remove can be given');
  if (plan === undefined && flags.remove !== true)
    return planOf(user) ?? `none: ${context.settings.extAuthzDefaultPlan || 'no default plan'} applies`;
  const changed = await updateUser(context, user.id, { appMetadata: { plan: plan ?? null } }, request());
  return `${user.id} has ${planOf(changed) === undefined ? 'no plan of its own' : `the plan ${planOf(changed)}`}`;
});
