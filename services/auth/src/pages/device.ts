import { isAppError } from '@tollgate/kit/errors';
import { html } from '@tollgate/kit/html';
import { errors } from '../errors.ts';
import { findDevicePage } from '../oauth/device-authorization.ts';
import { field, form, problemSummary } from './forms.ts';
import type { PageDefinition } from './page.ts';

/** The user enters the code that a device shows. @see RFC 8628 §3.3 */
export const devicePage: PageDefinition = {
  name: 'device',
  access: 'everyone',
  view: (visit, { problem }) => ({
    title: visit.texts.deviceTitle,
    content: html`${problemSummary(problem)}
<p>${visit.texts.deviceText}</p>
${form(visit, {
  action: visit.path('device'),
  content: html`${field(
    {
      name: 'user_code',
      label: visit.texts.deviceCode,
      autocomplete: 'one-time-code',
      value: visit.form.user_code ?? visit.query.user_code,
    },
    problem,
  )}
<button>${visit.texts.deviceNext}</button>`,
})}`,
  }),
  async submit({ context, form: { user_code: code = '' }, metadata, reply }) {
    const url = await findDevicePage(context, code, metadata).catch(describeUnknown);
    return reply.header('cache-control', 'no-store').redirect(url, 303);
  },
};

function describeUnknown(error: unknown): never {
  if (isAppError(error) && error.code === 'oauth_authorization_not_found') throw errors.device_code_invalid();
  throw error;
}

/** The end of the request of a device, which gets its tokens by itself. */
export const deviceDonePage: PageDefinition = {
  name: 'device-done',
  access: 'everyone',
  view: ({ texts, query }) => ({
    title: query.error === undefined ? texts.deviceDone : texts.deviceDenied,
    content: html`<p>${texts.deviceReturn}</p>`,
  }),
};
