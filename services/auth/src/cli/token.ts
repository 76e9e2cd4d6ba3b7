import { signJwt, tokenAudience, tokenIssuer } from '../keys/jwt.ts';
import { SigningKeySource } from '../keys/key-source.ts';
import type { Command } from './arguments.ts';
import { withDefaultsOfMode } from './development.ts';
import { createCommandLogger, loadSettings } from './load-settings.ts';

/** `admin token`: prints a service token for `/admin` that does not expire. */
export const tokenCommand: Command = async ({ environmentFiles, flags }) => {
  const { settings } = await loadSettings(environmentFiles, withDefaultsOfMode);
  const { jwtAdminRoles } = settings;
  const role = flags.role ?? jwtAdminRoles[0];
  if (role === undefined || !jwtAdminRoles.includes(role)) {
    // Other roles cannot have tokens that do not expire.
    const roles = jwtAdminRoles.join(', ') || 'none';
    process.stderr.write(
      `${role ?? 'no role'} is not allowed to use /admin: SVC_JWT_ADMIN_ROLES has ${roles}\n`,
    );
    process.exitCode = 1;
    return;
  }
  const { keys } = await SigningKeySource.open(settings, { logger: createCommandLogger(settings) });
  const iss = tokenIssuer(settings);
  const aud = tokenAudience('', settings);
  const claims = {
    role,
    iat: Math.floor(Date.now() / 1000),
    ...(iss !== '' && { iss }),
    ...(aud !== '' && { aud }),
  };
  process.stdout.write(`${signJwt(claims, keys)}\n`);
};
