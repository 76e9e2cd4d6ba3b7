import { html } from '@tollgate/kit/html';
import { parseInstant } from '@tollgate/kit/time';
import { errors } from '../../errors.ts';
import { type ActionSet, creationSet } from '../../http/actions.ts';
import type { View } from '../../http/routes.ts';
import type { Visit } from '../../http/visit.ts';
import { field } from '../../ui/fields.ts';
import { readText, readWords } from '../../ui/form.ts';
import { planFields, readPlan } from '../../ui/limit-fields.ts';
import { copyable } from '../../ui/text.ts';
import { type ApiKey, isChangeable, keyPath, readKey } from './api-key.ts';

/** Actions on one key. */
export const keySet: ActionSet<ApiKey> = {
  route: '/api-keys/:id',
  permission: 'api-keys',
  read: readKey,
  name: ({ name }) => name,
  path: keyPath,
  actions: [
    {
      path: 'plan',
      button: 'Set plan and limit',
      question: ({ name }) => `Requests with ${name} have the plan and limit at once.`,
      fields: (key) => planFields('this key', key),
      isOffered: isChangeable,
      run: async ({ visit, subject, form }) => {
        const { plan = '', limit = {} } = readPlan(form);
        await change(visit, subject, { plan, limit });
        return 'The plan and limit are set.';
      },
    },
    {
      path: 'rotate',
      button: 'Rotate',
      question: ({ name }) => `A new key with the rights and lifetime of ${name} replaces it.`,
      fields: () =>
        field({
          name: 'grace',
          label: 'Time in which the old key stays valid',
          value: '24h',
          hint: 'At most 720h. Empty: the old key ends at once.',
        }),
      isOffered: (key) => isChangeable(key) && !key.disabled,
      run: async ({ visit, subject: { id }, form }) => {
        const params = { path: { key_id: id } };
        const body = { grace: readText(form, 'grace') };
        return showSecret(
          await visit.services.auth((client) =>
            client.POST('/admin/api-keys/{key_id}/rotate', { params, body }),
          ),
        );
      },
    },
    {
      path: 'disable',
      button: 'Disable',
      question: ({ name }) => `Requests with ${name} are rejected until it is enabled again.`,
      isOffered: (key) => isChangeable(key) && !key.disabled,
      run: async ({ visit, subject }) => {
        await change(visit, subject, { disabled: true });
        return 'The key is disabled.';
      },
    },
    {
      path: 'enable',
      button: 'Enable',
      question: ({ name }) => `Requests with ${name} are accepted again.`,
      isOffered: (key) => isChangeable(key) && key.disabled,
      run: async ({ visit, subject }) => {
        await change(visit, subject, { disabled: false });
        return 'The key is enabled.';
      },
    },
    {
      path: 'revoke',
      button: 'Revoke',
      isDangerous: true,
      question: ({ name }) => `${name} is deleted, and requests with it are rejected. This cannot be undone.`,
      run: async ({ visit, subject: { id, name } }) => {
        const params = { path: { key_id: id } };
        await visit.services.auth((client) => client.DELETE('/admin/api-keys/{key_id}', { params }));
        return { notice: `${name} is revoked.`, path: '/api-keys' };
      },
    },
  ],
};

/** The action on the list. */
export const newKeySet = creationSet('/api-keys', 'api-keys', {
  button: 'Create an API key',
  question: () => 'The key is shown once, on the next page.',
  fields: () => newKeyFields,
  run: async ({ visit, form }) => {
    const body = readNewKey(form);
    return showSecret(await visit.services.auth((client) => client.POST('/admin/api-keys', { body })));
  },
});

interface KeyChange {
  readonly plan?: string;
  readonly limit?: Record<string, unknown>;
  readonly disabled?: boolean;
}

async function change(visit: Visit, { id }: ApiKey, body: KeyChange): Promise<void> {
  const params = { path: { key_id: id } };
  await visit.services.auth((client) => client.PUT('/admin/api-keys/{key_id}', { params, body }));
}

/** The response to the form, and the only page with the key. */
function showSecret({ key, ...created }: ApiKey & { readonly key: string }): View {
  return {
    title: 'Copy the key now',
    content: html`<section class="card stack"><p>This is the only time that the key of ${created.name} is shown: only its digest is stored.</p>
<p id="secret">${copyable(key)}</p><p><a href="${keyPath(created)}">Go to the key</a></p></section>`,
  };
}

const newKeyFields = html`${[
  field({ name: 'name', label: 'Name', isRequired: true }),
  field({ name: 'user_id', label: 'Id of the user who owns it' }),
  field({
    name: 'org_id',
    label: 'Id of the organization that owns it',
    hint: 'Without an owner, the key is that of a machine.',
  }),
  field({
    name: 'scopes',
    label: 'Scopes',
    placeholder: 'orders:read orders:write',
    hint: 'Separated by spaces, for the applications behind the gateway.',
  }),
  field({ name: 'role', label: 'Role', hint: 'Empty: that of the owner.' }),
  planFields('this key', {}),
  field({ name: 'expires_at', label: 'Expires (UTC)', type: 'datetime-local', hint: 'Empty: never.' }),
  field({
    name: 'allowed_networks',
    label: 'Networks that may use it',
    placeholder: '203.0.113.0/24',
    hint: 'Separated by spaces. Empty: any.',
  }),
]}`;

/** @throws AppError `invalid_value` */
function readNewKey(form: URLSearchParams) {
  const text = (name: string) => readText(form, name);
  const words = (name: string) => readWords(form, name, /[\s,]+/);
  return {
    name: text('name'),
    owner: { user_id: text('user_id'), org_id: text('org_id') },
    scopes: words('scopes'),
    role: text('role'),
    ...readPlan(form),
    expires_at: readExpiry(text('expires_at')),
    allowed_networks: words('allowed_networks'),
  };
}

/** Browsers send a local time without seconds. @throws AppError `invalid_value` */
function readExpiry(text: string): string {
  if (text === '') return '';
  const time = parseInstant(`${text.length === 'yyyy-mm-ddThh:mm'.length ? `${text}:00` : text}Z`);
  if (time === undefined)
    throw errors.invalid_value({
      message: 'The expiry is a time such as 2027-01-31T12:00. Nothing was changed.',
    });
  return time.toISOString();
}
