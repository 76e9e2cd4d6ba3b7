import type { AddRoutes } from '../http/api.ts';
import { addStyleRoute } from '../http/page-style.ts';
import { accountForm, accountPage, deletePage, emailForm, profileForm, signOutForm } from './account.ts';
import { apiKeyPage, endApiKey } from './api-keys.ts';
import { codeForm, codePage } from './code.ts';
import { confirmPage } from './confirm.ts';
import { consentPage } from './consent.ts';
import { deviceDonePage, devicePage } from './device.ts';
import { confirmFactorPage, enrollPage, removeFactorPage } from './factors.ts';
import { invitationPage } from './invitation.ts';
import { addLinkingRoute } from './linking.ts';
import { logoutPage } from './logout.ts';
import {
  invitationRevokeForm,
  inviteForm,
  memberRemoveForm,
  memberRoleForm,
  organizationKeyRevokeForm,
  organizationPage,
} from './organization.ts';
import { createOwn, joinOffered, leaveOrganization, switchActive } from './organizations.ts';
import { addPage, type PageDefinition, type PagesContext } from './page.ts';
import { continuePage, providerPage } from './providers.ts';
import { passwordPage, recoveryPage } from './recovery.ts';
import { recoveryCodesPage } from './recovery-codes.ts';
import { resendPage } from './resend.ts';
import { secondFactorPage } from './second-factor.ts';
import { endSession, removeIdentity } from './security.ts';
import { signInPage } from './sign-in.ts';
import { signUpPage } from './sign-up.ts';

const pages: readonly PageDefinition[] = [
  signInPage,
  codePage,
  codeForm,
  signUpPage,
  providerPage,
  continuePage,
  secondFactorPage,
  recoveryPage,
  passwordPage,
  accountPage,
  profileForm,
  emailForm,
  enrollPage,
  confirmFactorPage,
  removeFactorPage,
  recoveryCodesPage,
  confirmPage,
  resendPage,
  accountForm('session-end', endSession, { isSensitive: true }),
  accountForm('identity-remove', removeIdentity, { isSensitive: true }),
  apiKeyPage,
  accountForm('api-key-revoke', endApiKey),
  deletePage,
  signOutForm,
];

/** Pages of organizations, which the settings enable. */
const organizationPages: readonly PageDefinition[] = [
  invitationPage,
  organizationPage,
  memberRoleForm,
  memberRemoveForm,
  inviteForm,
  invitationRevokeForm,
  organizationKeyRevokeForm,
  accountForm('organization-switch', switchActive),
  accountForm('organization-join', joinOffered),
  accountForm('organization-leave', leaveOrganization),
  accountForm('organization-create', createOwn),
];

/** Pages for users of OAuth clients, which the settings enable. */
const oauthPages: readonly PageDefinition[] = [consentPage, devicePage, deviceDonePage, logoutPage];

/** All pages, whatever the settings enable. */
export const allPages: readonly PageDefinition[] = [...pages, ...organizationPages, ...oauthPages];

/** `/pages/…`: the pages for users. */
export const addPageRoutes: AddRoutes<PagesContext> = (api, context) => {
  addStyleRoute(api, context);
  addLinkingRoute(api, context);
  const { settings } = context;
  if (!settings.pagesEnabled) return;
  api.decorateRequest('visit', undefined);
  const shown = [
    ...pages,
    ...(settings.organizationsEnabled ? organizationPages : []),
    ...(settings.oauthServerEnabled ? oauthPages : []),
  ];
  for (const page of shown) addPage(api, context, page);
};
