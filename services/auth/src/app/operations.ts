import { adminApiKeysOperations } from './operations/admin-api-keys.ts';
import { adminClientsOperations } from './operations/admin-clients.ts';
import { adminEventsOperations } from './operations/admin-events.ts';
import { adminExplainOperations } from './operations/admin-explain.ts';
import { adminOrganizationsOperations } from './operations/admin-organizations.ts';
import { adminUsersOperations } from './operations/admin-users.ts';
import { factorsOperations } from './operations/factors.ts';
import { oauthOperations } from './operations/oauth.ts';
import type { Operation } from './operations/operation.ts';
import { organizationsOperations } from './operations/organizations.ts';
import { passkeysOperations } from './operations/passkeys.ts';
import { serviceOperations } from './operations/service.ts';
import { signInOperations } from './operations/sign-in.ts';
import { userOperations } from './operations/user.ts';

/** Tags of the OpenAPI document, in its order. */
const tags = [
  {
    name: 'Service',
    description: 'Health, settings, and what clients need to verify tokens.',
    operations: serviceOperations,
  },
  {
    name: 'OAuth server',
    description: 'Access for applications of others: OAuth 2.1 and OpenID Connect.',
    operations: oauthOperations,
  },
  {
    name: 'Sign-in',
    description: 'Get a session, by password, one-time password or identity provider.',
    operations: signInOperations,
  },
  {
    name: 'User',
    description: 'The user of the access token: profile, identities, sessions and API keys.',
    operations: userOperations,
  },
  {
    name: 'Second factors',
    description: 'Second factors and recovery codes of the user.',
    operations: factorsOperations,
  },
  {
    name: 'Passkeys',
    description: 'Sign in with a passkey, and manage those of the user.',
    operations: passkeysOperations,
  },
  {
    name: 'Organizations',
    description: 'Organizations of the user: members, invitations, domains and API keys.',
    operations: organizationsOperations,
  },
  {
    name: 'Administration: users',
    description: 'Users, their sessions, factors and passkeys.',
    operations: adminUsersOperations,
  },
  {
    name: 'Administration: organizations',
    description: 'All organizations, their members and domains.',
    operations: adminOrganizationsOperations,
  },
  {
    name: 'Administration: API keys',
    description: 'API keys of users, organizations and machines.',
    operations: adminApiKeysOperations,
  },
  {
    name: 'Administration: clients and providers',
    description: 'OAuth clients, token issuers, and identity providers.',
    operations: adminClientsOperations,
  },
  {
    name: 'Administration: audit and events',
    description: 'The audit log, and the delivery of events.',
    operations: adminEventsOperations,
  },
  {
    name: 'Administration: explanations',
    description: 'Why a check or a redirect is allowed or refused.',
    operations: adminExplainOperations,
  },
] as const;

/** An operation, and the tag that it is listed below. */
export type TaggedOperation = Operation & { readonly tag: string };

/** All operations by `METHOD /path`, with parameters in braces. */
export const operations: Readonly<Record<string, TaggedOperation>> = Object.fromEntries(
  tags.flatMap(({ name, operations: ofTag }) =>
    Object.entries(ofTag).map(([route, operation]) => [route, { ...operation, tag: name }]),
  ),
);

/** Names and descriptions, in the order of the document. */
export const operationTags = tags.map(({ name, description }) => ({ name, description }));
