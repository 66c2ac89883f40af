"use strict";

SwaggerUIBundle({
  url: document.getElementById("swagger-ui").dataset.schemaUrl,
  dom_id: "#swagger-ui",
  presets: [SwaggerUIBundle.presets.apis],
  layout: "BaseLayout",
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  // Who is signed in on the pages may call from here too.
  requestInterceptor: (request) => {
    const token = document.cookie.split("; ").find((pair) => pair.startsWith("csrftoken="));
    if (token) request.headers["X-CSRFToken"] = token.slice("csrftoken=".length);
    return request;
  },
  // The public validator would send the address of this server away.
  validatorUrl: null,
});
