import { type Html, html } from '@tollgate/kit/html';
import { choicesField, field } from '../../ui/fields.ts';
import { readText, readWords } from '../../ui/form.ts';
import type { OAuthClient } from './client.ts';

/** Grant types of the form. Workload identities have one of their own, with members it needs. */
const grantTypes = {
  authorization_code: 'Authorization code: users sign in at a redirect URI',
  refresh_token: 'Refresh token: sessions go on',
  client_credentials: 'Client credentials: a service acts for itself (confidential)',
  'urn:ietf:params:oauth:grant-type:device_code': 'Device code: users sign in on another device',
  'urn:ietf:params:oauth:grant-type:token-exchange':
    'Token exchange: a service acts for a user (confidential)',
};

/** Members of a client that do not change later. */
export function typeFields(): Html {
  return html`${field({
    name: 'client_type',
    label: 'Type',
    value: 'confidential',
    choices: {
      confidential: 'Confidential: a server, which keeps a secret',
      public: 'Public: an application in a browser or on a device, without a secret',
    },
  })}${choicesField({
    name: 'grant_types',
    label: 'Grant types',
    choices: grantTypes,
    chosen: ['authorization_code', 'refresh_token'],
  })}`;
}

/** Members of a client that may change. */
export function memberFields(client?: OAuthClient): Html {
  return html`${field({
    name: 'client_name',
    label: 'Name',
    value: client?.client_name ?? '',
    hint: 'Users see it when they give access.',
  })}${field({
    name: 'redirect_uris',
    label: 'Redirect URIs',
    value: client?.redirect_uris.join('\n') ?? '',
    hint: 'One per line. The authorization code needs one.',
    isLong: true,
  })}${field({
    name: 'scopes',
    label: 'Scopes',
    value: client?.scopes?.join(' ') ?? '',
    hint: 'Of your APIs, separated by spaces, such as orders:read.',
  })}${field({
    name: 'plan',
    label: 'Plan',
    value: client?.plan ?? '',
    hint: 'Empty: the default plan.',
  })}`;
}

/** Empty values remove members. Neither URIs nor scopes have spaces. */
export function readMembers(form: URLSearchParams) {
  return {
    client_name: readText(form, 'client_name'),
    redirect_uris: readWords(form, 'redirect_uris'),
    scopes: readWords(form, 'scopes'),
    plan: readText(form, 'plan'),
  };
}

export function readType(form: URLSearchParams) {
  return { client_type: readText(form, 'client_type'), grant_types: form.getAll('grant_types') };
}
