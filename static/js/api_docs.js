// Draws the API's description with Swagger UI; tried-out calls use the page's session and CSRF token.
const settings = JSON.parse(document.getElementById("swagger-settings").textContent);
const headers = JSON.parse(document.body.getAttribute("hx-headers"));
SwaggerUIBundle({
  ...settings,
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  requestInterceptor: (request) => {
    Object.assign(request.headers, headers);
    return request;
  },
});
