import { withDefaultsOfMode } from '../dev/development-environment.ts';
import { signJwt } from '../tokens/jwt.ts';
import { openSigningKeys } from '../tokens/signing-key-source.ts';
import { createCommandLogger } from './command-logger.ts';
import { loadSettings } from './load-settings.ts';
import type { Command } from './run-command.ts';

/** `admin token`: prints an access token that `/admin` takes, for ever and of nobody in particular. */
export const tokenCommand: Command = async ({ environmentFiles, flags }) => {
  const { settings } = await loadSettings(environmentFiles, withDefaultsOfMode);
  const { jwtAdminRoles } = settings;
  const role = flags.role ?? jwtAdminRoles[0];
  if (role === undefined || !jwtAdminRoles.includes(role)) {
    // The server refuses tokens of others that do not expire.
    const roles = jwtAdminRoles.join(', ') || 'none';
    process.stderr.write(`${role ?? 'nobody'} may not call /admin: SVC_JWT_ADMIN_ROLES names ${roles}\n`);
    process.exitCode = 1;
    return;
  }
  const { keys } = await openSigningKeys(settings, { logger: createCommandLogger(settings) });
  process.stdout.write(`${signJwt({ role, iat: Math.floor(Date.now() / 1000) }, keys)}\n`);
};
