import { type Html, html } from '@tollgate/kit/html';
import { field } from '../../ui/fields.ts';
import { readText, readWords } from '../../ui/form.ts';
import { jsonField, readJsonField } from '../../ui/json-field.ts';
import type { Provider } from './provider.ts';

/** Members of a provider that do not change later. */
export function typeFields(): Html {
  return html`${field({
    name: 'provider_type',
    label: 'Type',
    value: 'oidc',
    choices: {
      oidc: 'OpenID Connect: the endpoints are those of the issuer',
      oauth2: 'OAuth 2.0: with endpoints of its own',
    },
  })}${field({
    name: 'identifier',
    label: 'Identifier',
    placeholder: 'custom:shop',
    hint: 'Begins with custom:, then lower-case letters, digits, - and :. Applications name the provider by it.',
    isRequired: true,
  })}`;
}

const urls = {
  oidc: { issuer: 'Issuer', discovery_url: 'Discovery URL, if it is not that of the issuer' },
  oauth2: {
    authorization_url: 'Authorization endpoint',
    token_url: 'Token endpoint',
    userinfo_url: 'UserInfo endpoint',
  },
};

/** Members of a provider that may change. A new one has the URLs of both types. */
export function memberFields(provider?: Provider): Html {
  const labels = provider === undefined ? { ...urls.oidc, ...urls.oauth2 } : urls[provider.provider_type];
  return html`${field({ name: 'name', label: 'Name', value: provider?.name ?? '', hint: 'Users see it.', isRequired: true })}
${field({ name: 'client_id', label: 'Client id at the provider', value: provider?.client_id ?? '', isRequired: true })}
${field({
  name: 'client_secret',
  label: 'Client secret',
  type: 'password',
  isRequired: provider === undefined,
  hint:
    provider === undefined
      ? 'It is stored encrypted if the auth server has a key for that, and never shown.'
      : 'Empty: the secret stays. It is never shown.',
})}
${Object.entries(labels).map(([name, label]) =>
  field({ name, label, value: String({ ...provider }[name] ?? ''), placeholder: 'https://id.shop.example' }),
)}
${field({ name: 'scopes', label: 'Scopes', value: provider?.scopes.join(' ') ?? '', hint: 'Separated by spaces. Empty: openid email profile for OpenID Connect.' })}
${field({ name: 'acceptable_client_ids', label: 'Other accepted client ids', value: provider?.acceptable_client_ids.join(' ') ?? '', hint: 'Audiences of ID tokens that apps send, separated by spaces.' })}
${flagField('pkce_enabled', 'PKCE', provider?.pkce_enabled ?? true)}
${flagField('email_optional', 'Users without an email address may sign in', provider?.email_optional ?? false)}
${jsonField({ name: 'attribute_mapping', label: mappingLabel, value: provider?.attribute_mapping ?? {}, hint: 'Names of claims at the provider by those here, such as {"sub": "user_id"}.' })}
${jsonField({ name: 'authorization_params', label: parametersLabel, value: provider?.authorization_params ?? {}, hint: 'Sent to the authorization endpoint, such as {"prompt": "login"}.' })}`;
}

const mappingLabel = 'Claims';
const parametersLabel = 'Authorization parameters';

function flagField(name: string, label: string, value: boolean): Html {
  return field({ name, label, value: String(value), choices: { true: 'Yes', false: 'No' } });
}

/** The auth server ignores empty texts, and members of the other type. */
export function readMembers(form: URLSearchParams) {
  const text = (name: string) => readText(form, name);
  const scopes = readWords(form, 'scopes');
  return {
    name: text('name'),
    client_id: text('client_id'),
    client_secret: text('client_secret'),
    issuer: text('issuer'),
    discovery_url: text('discovery_url'),
    authorization_url: text('authorization_url'),
    token_url: text('token_url'),
    userinfo_url: text('userinfo_url'),
    ...(scopes.length > 0 && { scopes }),
    acceptable_client_ids: readWords(form, 'acceptable_client_ids'),
    pkce_enabled: text('pkce_enabled') === 'true',
    email_optional: text('email_optional') === 'true',
    attribute_mapping: readJsonField(form, 'attribute_mapping', mappingLabel),
    authorization_params: readJsonField(form, 'authorization_params', parametersLabel),
  };
}

export function readType(form: URLSearchParams) {
  return {
    provider_type: readText(form, 'provider_type'),
    identifier: readText(form, 'identifier'),
  };
}
