import type { RequestOptions, UnconvertedOptions } from '../http/options.ts';
import type { ApiResponse } from '../http/response.ts';
import type { KeyCase, ParsedKeys } from '../key-case.ts';

/**
 * Calls of an API by verb. The type of `parsed` is `T`, the API's own, if keys are preserved, else
 * `T` with its keys in snake_case.
 */
export abstract class ApiCalls<Keys extends KeyCase> {
  abstract request(method: string, location: string, options?: RequestOptions): Promise<ApiResponse>;

  get<T = unknown>(location: string, options: UnconvertedOptions): Promise<ApiResponse<T>>;
  get<T = unknown>(
    location: string,
    options?: RequestOptions<Keys>,
  ): Promise<ApiResponse<ParsedKeys<T, Keys>>>;
  get<T = unknown>(location: string, options?: RequestOptions): Promise<ApiResponse<ParsedKeys<T, KeyCase>>>;
  async get(location: string, options?: RequestOptions): Promise<ApiResponse> {
    return await this.request('GET', location, options);
  }

  post<T = unknown>(location: string, options: UnconvertedOptions): Promise<ApiResponse<T>>;
  post<T = unknown>(
    location: string,
    options?: RequestOptions<Keys>,
  ): Promise<ApiResponse<ParsedKeys<T, Keys>>>;
  post<T = unknown>(location: string, options?: RequestOptions): Promise<ApiResponse<ParsedKeys<T, KeyCase>>>;
  async post(location: string, options?: RequestOptions): Promise<ApiResponse> {
    return await this.request('POST', location, options);
  }

  put<T = unknown>(location: string, options: UnconvertedOptions): Promise<ApiResponse<T>>;
  put<T = unknown>(
    location: string,
    options?: RequestOptions<Keys>,
  ): Promise<ApiResponse<ParsedKeys<T, Keys>>>;
  put<T = unknown>(location: string, options?: RequestOptions): Promise<ApiResponse<ParsedKeys<T, KeyCase>>>;
  async put(location: string, options?: RequestOptions): Promise<ApiResponse> {
    return await this.request('PUT', location, options);
  }

  patch<T = unknown>(location: string, options: UnconvertedOptions): Promise<ApiResponse<T>>;
  patch<T = unknown>(
    location: string,
    options?: RequestOptions<Keys>,
  ): Promise<ApiResponse<ParsedKeys<T, Keys>>>;
  patch<T = unknown>(
    location: string,
    options?: RequestOptions,
  ): Promise<ApiResponse<ParsedKeys<T, KeyCase>>>;
  async patch(location: string, options?: RequestOptions): Promise<ApiResponse> {
    return await this.request('PATCH', location, options);
  }

  delete<T = unknown>(location: string, options: UnconvertedOptions): Promise<ApiResponse<T>>;
  delete<T = unknown>(
    location: string,
    options?: RequestOptions<Keys>,
  ): Promise<ApiResponse<ParsedKeys<T, Keys>>>;
  delete<T = unknown>(
    location: string,
    options?: RequestOptions,
  ): Promise<ApiResponse<ParsedKeys<T, KeyCase>>>;
  async delete(location: string, options?: RequestOptions): Promise<ApiResponse> {
    return await this.request('DELETE', location, options);
  }
}
