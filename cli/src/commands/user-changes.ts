import { type AuthClient, unwrap } from '@tollgate/admin-clients/clients';
import type { Command } from 'commander';
import { connectAuth } from '../connection/connect.ts';
import { CommandFailure } from '../failure.ts';
import { printJson } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, parseLimitText, toSource } from './command.ts';
import { findUser, printUsers, type User, whichUser } from './user-lookup.ts';

/** Commands that change one user. */
export function userChangeCommands(environment: Environment): readonly Command[] {
  return [
    banCommand(environment),
    unbanCommand(environment),
    signOutCommand(environment),
    planCommand(environment),
    setCommand(environment),
    recoverCommand(environment),
    removeFactorCommand(environment),
    deleteCommand(environment),
  ];
}

/** A change of a user, and what it says afterwards. */
function changeCommand(
  environment: Environment,
  made: Command,
  {
    change,
    done,
  }: {
    readonly change: (client: AuthClient, user: User, argument: string | undefined) => Promise<unknown>;
    readonly done: (name: string, argument: string | undefined) => string;
  },
): Command {
  return made.action(async (which: string, ...rest: readonly unknown[]) => {
    const options = made.opts<CommonOptions & { readonly for?: string }>();
    const [second] = rest;
    const argument = typeof second === 'string' ? second : options.for;
    const client = await connectAuth(toSource(environment, options));
    const user = await findUser(client, which);
    const changed = await change(client, user, argument);
    if (options.json) printJson(environment.terminal, changed ?? {});
    else environment.terminal.warn(done(user.email || user.phone || user.id, argument));
  });
}

interface Change {
  readonly ban_duration?: string;
  readonly app_metadata?: Record<string, unknown>;
}

function update(client: AuthClient, { id }: User, body: Change) {
  return unwrap(client.PUT('/admin/users/{user_id}', { params: { path: { user_id: id } }, body }));
}

function banCommand(environment: Environment): Command {
  const made = command('ban', 'Ban a user: no sign-in and no new tokens, and none at the gateway.', [
    'tollgate users ban ann@example.com --for 24h',
  ])
    .argument('<user>', whichUser)
    .option('--for <duration>', 'Such as 30m or 24h. Default: 100 years.', '876000h');
  return changeCommand(environment, made, {
    change: (client, user, duration = '') => update(client, user, { ban_duration: duration }),
    done: (name) => `${name} is banned`,
  });
}

function unbanCommand(environment: Environment): Command {
  const made = command('unban', 'Lift the ban of a user.', ['tollgate users unban ann@example.com']).argument(
    '<user>',
    whichUser,
  );
  return changeCommand(environment, made, {
    change: (client, user) => update(client, user, { ban_duration: 'none' }),
    done: (name) => `${name} is not banned any more`,
  });
}

function signOutCommand(environment: Environment): Command {
  const made = command('sign-out', 'End all sessions of a user.', [
    'tollgate users sign-out ann@example.com',
  ]).argument('<user>', whichUser);
  return changeCommand(environment, made, {
    change: (client, { id }) =>
      unwrap(client.DELETE('/admin/users/{user_id}/sessions', { params: { path: { user_id: id } } })),
    done: (name) => `all sessions of ${name} have ended`,
  });
}

function planCommand(environment: Environment): Command {
  const made = command('plan', 'Set the plan of a user, which rate limits use.', [
    'tollgate users plan ann@example.com pro',
  ])
    .argument('<user>', whichUser)
    .argument('<plan>', 'Name of the plan.');
  return changeCommand(environment, made, {
    change: (client, user, plan) => update(client, user, { app_metadata: { plan } }),
    done: (name, plan) => `${name} has the plan ${plan}`,
  });
}

interface SetOptions extends CommonOptions {
  readonly plan?: string;
  readonly limit?: string;
}

function setCommand(environment: Environment): Command {
  const { terminal } = environment;
  return command('set', 'Set the plan or the limit of a user.', [
    'tollgate users set ann@example.com --plan pro --limit 500/hour',
    'tollgate users set ann@example.com --limit none',
  ])
    .argument('<user>', whichUser)
    .option('--plan <plan>', 'The plan, which rate limits use, or none.')
    .option('--limit <limit>', 'Own limit instead of that of the plan, such as 100/minute, or none.')
    .action(async (which: string, options: SetOptions) => {
      const { plan, limit } = options;
      // Null removes a member.
      const metadata = {
        ...(plan !== undefined && { plan: plan === 'none' ? null : plan }),
        ...(limit !== undefined && { limit: parseLimitText(limit) ?? null }),
      };
      if (Object.keys(metadata).length === 0)
        throw new CommandFailure('nothing to change: use --plan or --limit');
      const client = await connectAuth(toSource(environment, options));
      const changed = await update(client, await findUser(client, which), { app_metadata: metadata });
      if (options.json) printJson(terminal, changed);
      else printUsers(terminal, [changed]);
    });
}

function recoverCommand(environment: Environment): Command {
  const made = command('recover', 'Send a user the mail with which to set a new password.', [
    'tollgate users recover ann@example.com',
  ]).argument('<user>', whichUser);
  return changeCommand(environment, made, {
    change: (client, { id }) =>
      unwrap(client.POST('/admin/users/{user_id}/recovery', { params: { path: { user_id: id } } })),
    done: (name) => `${name} gets a mail with a link`,
  });
}

function removeFactorCommand(environment: Environment): Command {
  const made = command('remove-factor', 'Remove a second factor of a user, who signs in without it.', [
    'tollgate users remove-factor ann@example.com 5f1c8f7e-8f3b-4a37-9d6c-0d7f7c1f3f10',
  ])
    .argument('<user>', whichUser)
    .argument('<factor>', 'Id of the factor: tollgate users factors lists them.');
  return changeCommand(environment, made, {
    change: (client, { id }, factor = '') =>
      unwrap(
        client.DELETE('/admin/users/{user_id}/factors/{factor_id}', {
          params: { path: { user_id: id, factor_id: factor } },
        }),
      ),
    done: (name, factor) => `${name} has no factor ${factor} any more`,
  });
}

function deleteCommand(environment: Environment): Command {
  const made = command('delete', 'Delete a user with sessions, factors and API keys. It cannot be undone.', [
    'tollgate users delete ann@example.com',
  ]).argument('<user>', whichUser);
  return changeCommand(environment, made, {
    change: (client, { id }) =>
      unwrap(client.DELETE('/admin/users/{user_id}', { params: { path: { user_id: id } }, body: {} })),
    done: (name) => `${name} is deleted`,
  });
}
