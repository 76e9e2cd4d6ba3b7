import type { AddRoutes } from '../api.ts';
import { addAdminAuditRoutes } from './admin-audit-routes.ts';
import { addAdminFactorRoutes } from './admin-factor-routes.ts';
import { addAdminLinkRoutes } from './admin-link-routes.ts';
import { addAdminSessionRoutes } from './admin-session-routes.ts';
import { addAdminUserRoutes } from './admin-user-routes.ts';
import { addDisabledRoutes } from './disabled-routes.ts';
import { addFactorRoutes } from './factor-routes.ts';
import { addKeyRoutes } from './key-routes.ts';
import { addLogoutRoutes } from './logout-routes.ts';
import { addMailboxRoutes } from './mailbox-routes.ts';
import { addOpenApiRoutes } from './open-api-routes.ts';
import { addOtpRoutes } from './otp-routes.ts';
import { addSessionRoutes } from './session-routes.ts';
import { addSignUpRoutes } from './sign-up-routes.ts';
import { addStatusRoutes } from './status-routes.ts';
import { addTokenRoutes } from './token-routes.ts';
import { addUserRoutes } from './user-routes.ts';
import { addVerifyRoutes } from './verify-routes.ts';

/** Every area of the API; a new one is a file and a line here. */
export const allRoutes: readonly AddRoutes[] = [
  addStatusRoutes,
  addKeyRoutes,
  addOpenApiRoutes,
  addSignUpRoutes,
  addMailboxRoutes,
  addTokenRoutes,
  addOtpRoutes,
  addVerifyRoutes,
  addUserRoutes,
  addSessionRoutes,
  addLogoutRoutes,
  addFactorRoutes,
  addAdminUserRoutes,
  addAdminLinkRoutes,
  addAdminAuditRoutes,
  addAdminFactorRoutes,
  addAdminSessionRoutes,
  addDisabledRoutes,
];
