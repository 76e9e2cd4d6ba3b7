import { isUuid } from '@tollgate/kit/text';
import { encodeCursor, parseCursor } from '../admin/list-pages.ts';
import type { Context } from '../app/context.ts';
import { putMember, removeMember } from '../organizations/members.ts';
import { type Organization, toOrganizationJson } from '../organizations/organization.ts';
import {
  createOrganization,
  deleteOrganization,
  type OrganizationInput,
  updateOrganization,
} from '../organizations/organizations.ts';
import type { Command, CommandFlags } from './arguments.ts';
import { CommandError, findUser, metadataNow, operator, withContext } from './operator.ts';
import { formatTable } from './routes.ts';

function request() {
  return { actor: operator, metadata: metadataNow() };
}

/** `orgs list`: a table or JSON lines; the cursor of the next page on standard error. */
export const listOrgsCommand: Command = ({ environmentFiles, flags }) =>
  withContext(environmentFiles, async ({ store }) => {
    const page = parseCursor({ cursor: flags.cursor ?? '', limit: flags.limit ?? '' });
    const filter = {
      ...(flags.plan !== undefined && { plan: flags.plan }),
      ...(flags['without-owner'] === true && { withoutOwner: true }),
    };
    const { items, next } = await store.organizations.listAfter(filter, page);
    if (next) process.stderr.write(`more organizations: --cursor ${encodeCursor(next)}\n`);
    if (flags.json === true) return items.map((each) => JSON.stringify(toOrganizationJson(each))).join('\n');
    const rows = items.map(({ id, slug, name, plan = '-', createdAt }) => [
      ...[id, slug, name.replaceAll(/\p{C}/gu, '?'), plan],
      createdAt.toISOString().slice(0, 10),
    ]);
    return formatTable([['ID', 'SLUG', 'NAME', 'PLAN', 'CREATED'], ...rows]).trimEnd();
  });

/** `orgs create`: prints the id. */
export const createOrgCommand: Command = ({ environmentFiles, args: [name = ''], flags }) =>
  withContext(environmentFiles, async (context) => {
    const owner = flags.owner === undefined ? undefined : await findUser(context, flags.owner, flags.aud);
    const { slug, plan } = flags;
    const created = await createOrganization(
      context,
      { name, slug, plan },
      { ...request(), ownerId: owner?.id },
    );
    return created.id;
  });

/** An organization by id or slug. @throws CommandError */
async function findOrganization({ store }: Context, name: string): Promise<Organization> {
  const found = isUuid(name)
    ? await store.organizations.find(name.toLowerCase())
    : (await store.organizations.listAfter({ slug: name }, { limit: 1, after: undefined })).items[0];
  if (found === undefined) throw new CommandError(`organization not found: ${name}`);
  return found;
}

/** Runs `work` for the organization of the first argument, and prints its result. */
function forOrganization(
  work: (
    context: Context,
    organization: Organization,
    options: { readonly args: readonly string[]; readonly flags: CommandFlags },
  ) => Promise<string>,
): Command {
  return ({ environmentFiles, args: [name = '', ...args], flags }) =>
    withContext(environmentFiles, async (context) =>
      work(context, await findOrganization(context, name), { args, flags }),
    );
}

/** `orgs get`: with the members. */
export const getOrgCommand = forOrganization(async ({ store }, organization) => {
  const members = await store.organizations.listMembers(organization.id);
  const shown = members.map(({ userId, email, role }) => ({ user_id: userId, email, role }));
  return JSON.stringify({ ...toOrganizationJson(organization), members: shown }, null, 2);
});

/** `orgs set`: plan and limit. */
export const setOrgCommand = forOrganization(async (context, { id }, { flags }) => {
  const { plan, limit } = flags;
  if (plan === undefined && limit === undefined)
    throw new CommandError('either --plan or --limit is required');
  const input: OrganizationInput = { plan, ...(limit !== undefined && { limit: parseLimit(limit) }) };
  const organization = await updateOrganization(context, id, { ...request(), own: undefined, input });
  return JSON.stringify(toOrganizationJson(organization), null, 2);
});

/** Parses `100/minute`; an empty text removes the limit. */
function parseLimit(text: string): OrganizationInput['limit'] {
  if (text === '') return {};
  const [, requests, unit] = /^(\d{1,10})\/([a-z]+)$/i.exec(text) ?? [];
  if (requests === undefined || unit === undefined)
    throw new CommandError('--limit must be a number and a unit, such as 100/minute');
  return { requests_per_unit: Number(requests), unit };
}

/** `orgs put-member`: adds a user, or changes the role. */
export const putMemberCommand = forOrganization(
  async (context, { id, slug }, { args: [name = ''], flags }) => {
    const user = await findUser(context, name, flags.aud);
    const { role } = await putMember(context, {
      ...request(),
      ...{ organizationId: id, userId: user.id, role: flags.role ?? 'member' },
    });
    return `${user.id} is ${role} of ${slug}`;
  },
);

/** `orgs remove-member` */
export const removeMemberCommand = forOrganization(
  async (context, { id, slug }, { args: [name = ''], flags }) => {
    const { id: userId } = await findUser(context, name, flags.aud);
    await removeMember(context, { ...request(), organizationId: id, userId, own: undefined });
    return `${userId} is not a member of ${slug}`;
  },
);

/** `orgs delete` */
export const deleteOrgCommand = forOrganization(async (context, { id }) => {
  await deleteOrganization(context, id, { ...request(), own: undefined });
  return `${id} is deleted`;
});
