import { bool, oneOf, text } from '@tollgate/kit/settings';
import { globList } from './glob-list.ts';
import { svc } from './variable-names.ts';
import { withoutEffect } from './without-effect.ts';

const group = 'Site and sign-up';

/** The site that users come from, and who may sign up. */
export const coreSettings = {
  mode: oneOf(['production', 'development'], {
    ...svc('MODE'),
    group,
    default: 'production',
    doc: '`development` listens on loopback only, brings its own PostgreSQL, and makes up what must otherwise be set.',
  }),
  developmentFolder: text({
    ...svc('DEVELOPMENT_FOLDER'),
    group,
    default: '.tollgate-auth',
    doc: 'Where development mode keeps its database and its secrets.',
  }),
  siteUrl: text({
    ...svc('SITE_URL'),
    group,
    required: true,
    doc: 'Base URL of the site. Any URL of the same origin is an allowed `redirect_to`.',
  }),
  uriAllowList: globList({
    ...svc('URI_ALLOW_LIST'),
    group,
    default: [],
    doc: 'Further permitted `redirect_to` URLs, with globs: `*`, `**`, `?`, `[a-z]`, `{a,b}`.',
  }),
  disableSignup: bool({
    ...svc('DISABLE_SIGNUP'),
    group,
    default: false,
    doc: 'Users are created by invitation and by administrators only.',
  }),
  externalEmailEnabled: bool({
    ...svc('EXTERNAL_EMAIL_ENABLED'),
    group,
    default: true,
    doc: 'Sign-up and sign-in by email.',
  }),
  externalEmailMagicLinkEnabled: bool({
    ...svc('EXTERNAL_EMAIL_MAGIC_LINK_ENABLED'),
    group,
    default: true,
    doc: 'Sign-in by a link or code that is mailed.',
  }),
  externalPhoneEnabled: bool({
    ...svc('EXTERNAL_PHONE_ENABLED'),
    group,
    default: false,
    doc: 'Sign-up and sign-in by phone.',
  }),
  externalAnonymousUsersEnabled: bool({
    ...svc('EXTERNAL_ANONYMOUS_USERS_ENABLED'),
    group,
    default: false,
    doc: 'Sign-up without email and phone.',
  }),
  operatorToken: withoutEffect(
    text({ ...svc('OPERATOR_TOKEN'), group, default: '', secret: true, doc: 'Multi-instance mode.' }),
  ),
};
