import { type AuthClient, unwrap } from '@tollgate/admin-clients/clients';
import { isUuid } from '@tollgate/kit/text';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printTable } from '../output/table.ts';
import type { Terminal } from '../output/terminal.ts';

/** Describes the argument that names a user. */
export const whichUser = 'Email address, phone number or id of the user.';

export type User = Awaited<ReturnType<typeof findUser>>;

/** Finds a user by its id, email address or phone number. @throws CommandFailure */
export async function findUser(client: AuthClient, which: string) {
  if (isUuid(which))
    return unwrap(client.GET('/admin/users/{user_id}', { params: { path: { user_id: which } } }));
  const query = which.includes('@') ? { email: which } : { phone: which.replace(/^\+/, '') };
  const { users } = await unwrap(client.GET('/admin/users', { params: { query: { ...query, limit: '2' } } }));
  const [user, another] = users;
  if (user === undefined) throw new CommandFailure(`there is no user ${which}`, exitCodes.failed);
  if (another !== undefined)
    throw new CommandFailure(`several users are ${which}: use the id of one of them`);
  return user;
}

/** Writes a table of users. */
export function printUsers(terminal: Terminal, users: readonly User[]): void {
  printTable(terminal, users, {
    columns: {
      ID: ({ id }) => id,
      USER: ({ email, phone }) => email || phone,
      PLAN: ({ app_metadata: { plan } }) => (typeof plan === 'string' ? plan : undefined),
      LIMIT: ({ app_metadata: { limit } }) => formatLimit(limit),
      CREATED: ({ created_at: created }) => created,
      'LAST SIGN-IN': ({ last_sign_in_at: last }) => last,
      STATE: ({ banned_until: until, confirmed_at: confirmed }) =>
        until !== undefined && Date.parse(until) > Date.now()
          ? `banned until ${until}`
          : confirmed === undefined
            ? 'not confirmed'
            : 'active',
    },
    empty: 'No user is like that. tollgate users list --help has all filters.',
  });
}

/** Programs may have stored something else. */
function formatLimit(limit: unknown): string | undefined {
  if (typeof limit !== 'object' || limit === null) return undefined;
  const { requests_per_unit: requests, unit }: Partial<Record<string, unknown>> = { ...limit };
  return `${String(requests)} per ${String(unit).toLowerCase()}`;
}
