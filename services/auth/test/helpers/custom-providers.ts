import { adminToken } from './admin.ts';
import type { Answer, AuthServer } from './auth-server.ts';

/** An OAuth provider of an administrator. */
export const forum = {
  provider_type: 'oauth2',
  identifier: 'custom:forum',
  name: 'Forum',
  client_id: 'app',
  client_secret: 'the secret of the client',
  authorization_url: 'https://forum.example/authorize',
  token_url: 'https://forum.example/token',
  userinfo_url: 'https://forum.example/me',
} as const;

/** Adds a provider as an administrator does. */
export function addProvider(
  server: Pick<AuthServer, 'call'>,
  members: Readonly<Record<string, unknown>>,
): Promise<Answer> {
  const body = { ...forum, ...members };
  return server.call('POST', '/admin/custom-providers', { token: adminToken(), body });
}
