import { type AuthClient, unwrap } from '@tollgate/admin-clients/clients';
import { isUuid } from '@tollgate/kit/text';
import type { Command } from 'commander';
import { connectAuth } from '../connection/connect.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printTable } from '../output/table.ts';
import { printJson, type Terminal } from '../output/terminal.ts';
import {
  type CommonOptions,
  command,
  type Environment,
  group,
  type ListOptions,
  pagedCommand,
  parseLimitText,
  printNext,
  toPageQuery,
  toSource,
} from './command.ts';
import { findUser, whichUser } from './user-lookup.ts';

const whichOrganization = 'Id or slug of the organization.';

/** `tollgate orgs`: organizations and their members. */
export function orgCommands(environment: Environment): Command {
  return group('orgs', 'Organizations and their members.', [
    listCommand(environment),
    getCommand(environment),
    createCommand(environment),
    setCommand(environment),
    deleteCommand(environment),
    membersCommand(environment),
    putMemberCommand(environment),
    removeMemberCommand(environment),
  ]);
}

type Organization = Awaited<ReturnType<typeof findOrganization>>;

/** @throws CommandFailure */
async function findOrganization(client: AuthClient, which: string) {
  if (isUuid(which)) {
    const path = { organization_id: which };
    return unwrap(client.GET('/admin/organizations/{organization_id}', { params: { path } }));
  }
  const query = { slug: which, limit: '1' };
  const { organizations } = await unwrap(client.GET('/admin/organizations', { params: { query } }));
  const [organization] = organizations;
  if (organization === undefined)
    throw new CommandFailure(`there is no organization ${which}`, exitCodes.failed);
  return organization;
}

function printOrganizations(terminal: Terminal, organizations: readonly Organization[]): void {
  printTable(terminal, organizations, {
    columns: {
      ID: ({ id }) => id,
      SLUG: ({ slug }) => slug,
      NAME: ({ name }) => name,
      PLAN: ({ plan }) => plan,
      LIMIT: ({ limit }) => limit && `${limit.requests_per_unit} per ${limit.unit}`,
      CREATED: ({ created_at: created }) => created,
    },
    empty: 'There is no organization like that. tollgate orgs create --help says how to make one.',
  });
}

function printOrganization(terminal: Terminal, organization: Organization, { json }: CommonOptions): void {
  if (json) printJson(terminal, organization);
  else printOrganizations(terminal, [organization]);
}

interface OrgListOptions extends ListOptions {
  readonly plan?: string;
  readonly user?: string;
  readonly withoutOwner?: true;
}

function listCommand(environment: Environment): Command {
  const { terminal } = environment;
  return pagedCommand('list', 'List organizations, newest first.', ['tollgate orgs list --plan pro'])
    .option('--plan <plan>', 'The plan.')
    .option('--user <user>', 'Only those of a member: email address, phone number or id.')
    .option('--without-owner', 'Only those whose owners were deleted.')
    .action(async (options: OrgListOptions) => {
      const { plan, user, withoutOwner } = options;
      const client = await connectAuth(toSource(environment, options));
      const query = {
        ...toPageQuery(options),
        ...(plan !== undefined && { plan }),
        ...(user !== undefined && { user_id: (await findUser(client, user)).id }),
        ...(withoutOwner && { without_owner: 'true' }),
      };
      const page = await unwrap(client.GET('/admin/organizations', { params: { query } }));
      if (options.json) return printJson(terminal, page);
      printOrganizations(terminal, page.organizations);
      printNext(terminal, page);
    });
}

function getCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('get', 'Show an organization.', ['tollgate orgs get acme --json'])
    .argument('<organization>', whichOrganization)
    .action(async (which: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const organization = await findOrganization(client, which);
      printOrganization(terminal, organization, options);
    });
}

interface CreateOptions extends CommonOptions {
  readonly slug?: string;
  readonly owner?: string;
  readonly plan?: string;
}

function createCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('create', 'Create an organization.', [
    'tollgate orgs create "Acme Inc." --slug acme --owner ann@example.com --plan pro',
  ])
    .argument('<name>', 'Name of the organization.')
    .option('--slug <slug>', 'Name in URLs and policies. Default: from the name.')
    .option('--owner <user>', 'Its first owner: email address, phone number or id.')
    .option('--plan <plan>', 'The plan, which rate limits use.')
    .action(async (name: string, options: CreateOptions) => {
      const { slug, owner, plan } = options;
      const client = await connectAuth(toSource(environment, options));
      const body = {
        name,
        ...(slug !== undefined && { slug }),
        ...(plan !== undefined && { plan }),
        ...(owner !== undefined && { owner_id: (await findUser(client, owner)).id }),
      };
      const created = await unwrap(client.POST('/admin/organizations', { body }));
      printOrganization(terminal, created, options);
    });
}

interface SetOptions extends CommonOptions {
  readonly name?: string;
  readonly plan?: string;
  readonly limit?: string;
}

function setCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('set', 'Change the name, plan or limit of an organization.', [
    'tollgate orgs set acme --plan pro --limit 100/minute',
    'tollgate orgs set acme --limit none',
  ])
    .argument('<organization>', whichOrganization)
    .option('--name <name>', 'Name of the organization.')
    .option('--plan <plan>', 'The plan, which rate limits use.')
    .option('--limit <limit>', 'Own limit instead of that of the plan, such as 100/minute, or none.')
    .action(async (which: string, options: SetOptions) => {
      const { name, plan, limit } = options;
      const body = {
        ...(name !== undefined && { name }),
        ...(plan !== undefined && { plan }),
        ...(limit !== undefined && { limit: parseLimitText(limit) ?? {} }),
      };
      if (Object.keys(body).length === 0)
        throw new CommandFailure('nothing to change: use --name, --plan or --limit');
      const client = await connectAuth(toSource(environment, options));
      const path = { organization_id: (await findOrganization(client, which)).id };
      const changed = await unwrap(
        client.PUT('/admin/organizations/{organization_id}', { params: { path }, body }),
      );
      printOrganization(terminal, changed, options);
    });
}

function deleteCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('delete', 'Delete an organization with its members and API keys.', [
    'tollgate orgs delete acme',
  ])
    .argument('<organization>', whichOrganization)
    .action(async (which: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const { id, slug } = await findOrganization(client, which);
      const path = { organization_id: id };
      await unwrap(client.DELETE('/admin/organizations/{organization_id}', { params: { path } }));
      if (options.json) printJson(terminal, {});
      else terminal.warn(`the organization ${slug} is deleted`);
    });
}

function membersCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('members', 'List the members of an organization.', ['tollgate orgs members acme'])
    .argument('<organization>', whichOrganization)
    .action(async (which: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const path = { organization_id: (await findOrganization(client, which)).id };
      const { members } = await unwrap(
        client.GET('/admin/organizations/{organization_id}/members', { params: { path } }),
      );
      if (options.json) return printJson(terminal, members);
      printTable(terminal, members, {
        columns: {
          'USER ID': (member) => member.user_id,
          EMAIL: ({ email }) => email,
          ROLE: ({ role }) => role,
          SINCE: (member) => member.created_at,
        },
        empty: 'The organization has no members. Add one: tollgate orgs put-member --help',
      });
    });
}

function putMemberCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('put-member', 'Add a user to an organization, or change the role of a member.', [
    'tollgate orgs put-member acme ann@example.com --role admin',
  ])
    .argument('<organization>', whichOrganization)
    .argument('<user>', whichUser)
    .option('--role <role>', 'The role.', 'member')
    .action(async (which: string, user: string, options: CommonOptions & { readonly role: string }) => {
      const client = await connectAuth(toSource(environment, options));
      const { id, slug } = await findOrganization(client, which);
      const path = { organization_id: id, user_id: (await findUser(client, user)).id };
      const { role } = options;
      const member = await unwrap(
        client.PUT('/admin/organizations/{organization_id}/members/{user_id}', {
          params: { path },
          body: { role },
        }),
      );
      if (options.json) printJson(terminal, member);
      else terminal.warn(`${user} is ${member.role} of ${slug}`);
    });
}

function removeMemberCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('remove-member', 'Remove a user from an organization.', [
    'tollgate orgs remove-member acme ann@example.com',
  ])
    .argument('<organization>', whichOrganization)
    .argument('<user>', whichUser)
    .action(async (which: string, user: string, options: CommonOptions) => {
      const client = await connectAuth(toSource(environment, options));
      const { id, slug } = await findOrganization(client, which);
      const path = { organization_id: id, user_id: (await findUser(client, user)).id };
      await unwrap(
        client.DELETE('/admin/organizations/{organization_id}/members/{user_id}', { params: { path } }),
      );
      if (options.json) printJson(terminal, {});
      else terminal.warn(`${user} is not a member of ${slug} any more`);
    });
}
