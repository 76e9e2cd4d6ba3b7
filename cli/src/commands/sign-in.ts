import { adminScopePrefix } from '@tollgate/admin-clients/admin-scopes';
import { createAuthClient } from '@tollgate/admin-clients/clients';
import { AbortError, OAuthClientError, TokenUnavailableError } from '@tollgate/oauth2-client';
import { pollDeviceToken, startDeviceAuthorization } from '@tollgate/oauth2-client/device';
import type { Command } from 'commander';
import { contextName, defaultTimeoutMs } from '../connection/connect.ts';
import {
  contextFilePath,
  findContext,
  forAuthServer,
  hasOtherAuthServer,
  readContexts,
  updateContexts,
} from '../connection/contexts.ts';
import { requireUrl } from '../connection/inputs.ts';
import { oauthClient, personName, tokenManager, tokenSource, toRequestError } from '../connection/sign-in.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { printJson } from '../output/terminal.ts';
import { type CommonOptions, command, type Environment, toSource } from './command.ts';

interface LoginOptions extends CommonOptions {
  readonly authUrl?: string;
  readonly scope?: readonly string[];
}

/** The name of the first context of a person who does not choose one. */
const defaultName = 'default';

/** `tollgate login` */
export function loginCommand(environment: Environment): Command {
  const { env, terminal, sleep, interruption } = environment;
  return command('login', 'Sign in to the auth server of the context with a code, in any browser.', [
    'tollgate login --auth-url https://auth.example.com',
    'tollgate login --scope users:read audit:read',
  ])
    .option('--auth-url <url>', 'Base URL of the auth server. Default: that of the context.')
    .option('--scope <names...>', 'Admin scopes of the sign-in. Default: all.')
    .action(async (options: LoginOptions) => {
      const path = contextFilePath(env);
      const file = await readContexts(path);
      const name = contextName(toSource(environment, options), file.current) ?? defaultName;
      const known = findContext(file, name);
      const { authUrl = known?.authUrl } = options;
      if (authUrl === undefined)
        throw new CommandFailure(
          `the context ${name} has no auth server: add --auth-url https://auth.example.com`,
        );
      requireUrl(authUrl);
      if (options.context === undefined && known !== undefined && hasOtherAuthServer(known, authUrl))
        throw new CommandFailure(
          `the context ${name} is of ${known.authUrl}: add --context and a new name to keep it, or --context ${name} to replace it with its key and URLs`,
        );
      try {
        const client = oauthClient(authUrl);
        const { scope } = options;
        const device = await startDeviceAuthorization(client, scope ? { scope: toScope(scope) } : {});
        terminal.warn(
          `Open ${device.verificationUri} in a browser, and enter the code ${device.userCode}\nThe code is valid until ${new Date(device.expiresAt * 1000).toLocaleTimeString()}. Enter it only because you ran this command.`,
        );
        const token = await pollDeviceToken(client, device, {
          signal: interruption(),
          ...(sleep && { sleep }),
        });
        // Until here, a sign-in that fails changes nothing.
        await updateContexts(path, (latest) => ({
          current: name,
          contexts: { ...latest.contexts, [name]: forAuthServer(findContext(latest, name), authUrl) },
        }));
        await tokenManager(authUrl, { path, name }).setToken(token);
      } catch (error) {
        throw error instanceof OAuthClientError ? toLoginError(error, authUrl) : error;
      }
      // Asks with the new token, although a key of the environment comes before it in commands.
      const token = tokenSource(authUrl, { path, name });
      const person = await personName(createAuthClient({ url: authUrl, token, timeoutMs: defaultTimeoutMs }));
      if (options.json) printJson(terminal, { context: name, name: person });
      else terminal.warn(`signed in as ${person}, in the context ${name}`);
    });
}

/** The names are those of docs/admin-scopes.md. The status shows the email address. */
function toScope(names: readonly string[]): string {
  const full = names.map((name) => (name.startsWith(adminScopePrefix) ? name : `${adminScopePrefix}${name}`));
  return ['email', ...full].join(' ');
}

function toLoginError(error: OAuthClientError, authUrl: string): Error {
  const code = 'code' in error ? error.code : undefined;
  if (code === 'access_denied') return new CommandFailure('the sign-in was refused', exitCodes.failed);
  if (code === 'expired_token' || error instanceof TokenUnavailableError)
    return new CommandFailure('the code has expired: run tollgate login again', exitCodes.failed);
  if (error instanceof AbortError) return new CommandFailure('the sign-in was interrupted', exitCodes.failed);
  return toRequestError(error, authUrl);
}

/** `tollgate logout` */
export function logoutCommand(environment: Environment): Command {
  const { env, terminal } = environment;
  return command('logout', 'End the sign-in of the context, also at the auth server.', [
    'tollgate logout',
    'tollgate logout --context shop',
  ]).action(async (options: CommonOptions) => {
    const path = contextFilePath(env);
    const file = await readContexts(path);
    const name = contextName(toSource(environment, options), file.current);
    const context = name === undefined ? undefined : findContext(file, name);
    if (name === undefined || context?.login === undefined || context.authUrl === undefined)
      throw new CommandFailure('there is no sign-in in this context');
    const revoked = await tokenManager(context.authUrl, { path, name })
      .revoke()
      .then(
        () => true,
        (error: unknown) => {
          if (error instanceof OAuthClientError) return false;
          throw error;
        },
      );
    await updateContexts(path, (latest) => {
      const { login: _ended, ...others } = findContext(latest, name) ?? {};
      return { ...latest, contexts: { ...latest.contexts, [name]: others } };
    });
    if (!revoked)
      throw new CommandFailure(
        'the tokens are removed here, but the auth server could not end their session: end it on /pages/security',
        exitCodes.failed,
      );
    if (options.json) printJson(terminal, { context: name });
    else terminal.warn(`signed out of the context ${name}`);
  });
}
