import { defineErrors, grpcStatus } from '@tollgate/kit/errors';

/** All errors of the console, by their stable code. */
export const errors = defineErrors({
  page_not_found: {
    httpStatus: 404,
    grpcStatus: grpcStatus.notFound,
    message: 'There is no such page. The menu lists all pages.',
  },
  missing_scope: {
    httpStatus: 403,
    grpcStatus: grpcStatus.permissionDenied,
    message: 'Your account does not have the right to see or do this.',
  },
  not_administrator: {
    httpStatus: 403,
    grpcStatus: grpcStatus.permissionDenied,
    message:
      'Your account is not that of an administrator. An administrator gives it a role of SVC_JWT_ADMIN_ROLES.',
  },
  form_rejected: {
    httpStatus: 403,
    grpcStatus: grpcStatus.permissionDenied,
    message:
      'The form is of an earlier session or another site, and nothing was changed. Load the page again.',
  },
  session_ended: {
    httpStatus: 401,
    grpcStatus: grpcStatus.unauthenticated,
    message: 'Your session has ended. Load the page again to sign in.',
  },
  not_confirmed: {
    httpStatus: 400,
    grpcStatus: grpcStatus.invalidArgument,
    message: 'The text does not match, and nothing was changed. Go back and type it as shown.',
  },
  invalid_value: {
    httpStatus: 400,
    grpcStatus: grpcStatus.invalidArgument,
    message: 'A field has a value that is not accepted, and nothing was changed.',
  },
  no_limiters: {
    httpStatus: 503,
    grpcStatus: grpcStatus.failedPrecondition,
    message:
      'The console knows no counter API, and nothing was changed. Set CONSOLE_LIMITER_URLS, and ADMIN_PORT of the rate limit services.',
  },
  sign_in_failed: {
    httpStatus: 400,
    grpcStatus: grpcStatus.unauthenticated,
    message: 'The sign-in did not complete. Start again.',
  },
  sign_in_unavailable: {
    httpStatus: 503,
    grpcStatus: grpcStatus.unavailable,
    message: 'The auth server does not answer, and signing in needs it. Retry in a moment.',
  },
});
