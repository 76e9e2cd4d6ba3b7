/** What is tolerated but worth knowing; `code` is stable. */
export type WarningCode =
  | 'extra_tokens'
  | 'no_token'
  | 'token_name_missing'
  | 'key_collision'
  | 'token_type_missing'
  | 'expires_in_invalid'
  | 'expires_in_string'
  | 'content_type_mismatch'
  | 'error_with_success_status'
  | 'insecure_endpoint'
  | 'id_token_dropped'
  | 'id_token_not_validated'
  | 'implicit_grant'
  | 'token_in_query';

/** One warning. The message holds names, never values. */
export type WarningEvent = { readonly code: WarningCode; readonly message: string };
